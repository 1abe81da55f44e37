"""What a worker knows of the notebook's memory: where in it something begins."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
import torch

from nbshm.jobs import Spot
from nbshm.memory.mapping import MappedSegments
from nbshm.memory.shared.segments import Segment
from nbshm.memory.tensors import cuda


def test_where_a_tensor_begins_is_told_by_segment_and_of_other_memory_not():
    segment = Segment.create(4096)
    with MappedSegments([os.dup(segment.fd)], [4096]) as mapping:
        tensor = torch.frombuffer(mapping.shared(0), dtype=torch.float32)
        assert mapping.spot_of(tensor) == Spot(is_cuda=False, number=0, offset=0)
        assert mapping.spot_of(tensor[2:]) == Spot(is_cuda=False, number=0, offset=8)
        assert mapping.spot_of(torch.zeros(2)) is None


class OnGpu:
    """Stands for a storage on a GPU, which is known by being that very object."""

    device = torch.device("cuda")


def test_where_a_tensor_on_a_gpu_begins_is_told_by_storage(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cuda, "opened", lambda handle: handle)
    storages = [OnGpu(), OnGpu()]

    def tensor(storage: OnGpu) -> SimpleNamespace:
        return SimpleNamespace(untyped_storage=lambda: storage, storage_offset=lambda: 3, itemsize=4)

    with MappedSegments([], [], cuda=storages) as mapping:
        mapping.cuda_storage(1)
        assert mapping.spot_of(tensor(storages[1])) == Spot(is_cuda=True, number=1, offset=12)
        assert mapping.spot_of(tensor(OnGpu())) is None
