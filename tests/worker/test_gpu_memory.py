"""GPU memory is told where there is some; here a stand-in has it, as most machines have no GPU."""

from __future__ import annotations

import sys
from types import SimpleNamespace

from nbshm.events import GpuMemory
from nbshm.worker import gpu_memory
from nbshm.worker.gpu_memory import GpuNotices


class Cuda:
    def __init__(self) -> None:
        self.held: list[int] | None = None

    def is_initialized(self) -> bool:
        return self.held is not None

    def device_count(self) -> int:
        return len(self.held)

    def memory_reserved(self, device: int) -> int:
        return self.held[device]


def test_memory_is_told_once_cuda_is_in_use_and_when_it_changes(monkeypatch):
    monkeypatch.setattr(gpu_memory, "BETWEEN_LOOKS", 0.0)
    cuda, said = Cuda(), []
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    notices = GpuNotices(3, said.append)
    notices.look()
    assert said == []
    cuda.held = [1 << 20, 2 << 20]
    notices.look()
    notices.look()
    assert said == [GpuMemory(rank=3, nbytes=3 << 20)]


def test_without_torch_nothing_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    said: list = []
    GpuNotices(0, said.append).look()
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    GpuNotices(0, said.append).look()
    assert said == []
