"""A notebook of the tests' own, and children that stand for workers: they get descriptors over a socket."""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import socket
import subprocess
import sys
from collections import ChainMap
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import cloudpickle
import torch

from nbshm.memory.buffers import Buffers
from nbshm.memory.ownership.names import NotebookNames
from nbshm.memory.placing import Placement, place
from nbshm.memory.reducers import reducers
from nbshm.memory.shared.segments import Segments

CHILD = Path(__file__).with_name("memory_child.py")
TIMEOUT = 60


class ValuePickler(cloudpickle.Pickler):
    def __init__(self, file, buffers, is_shared):
        carried = ForkingPickler(io.BytesIO()).dispatch_table
        # Before __init__: the C pickler looks for it there, and never again.
        self.dispatch_table = ChainMap(
            reducers(buffers, is_shared), carried, cloudpickle.Pickler.dispatch_table
        )
        super().__init__(file, protocol=5)


def pickled(value: Any, buffers: Buffers, is_shared: Callable[[Any], bool] = lambda _: True) -> bytes:
    file = io.BytesIO()
    ValuePickler(file, buffers, is_shared).dump(value)
    return file.getvalue()


class Child:
    """A process that runs code on the values that it is sent, one job after the other."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(TIMEOUT)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(CHILD), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},  # classes of tests travel by name
            )

    def send(self, payload: bytes, placement: Placement, code: str, rank: int = 0) -> None:
        first = len(placement.sizes) - placement.spares
        spare = first + rank if rank < placement.spares else None
        message = pickle.dumps((payload, placement.places, placement.sizes, spare, code))
        socket.send_fds(self._socket, [len(message).to_bytes(8, "little")], list(placement.fds))
        self._socket.sendall(message)

    def receive(self, placement: Placement) -> Any:
        length, fds, _, _ = socket.recv_fds(self._socket, 8, 16)
        message = b""
        while len(message) < int.from_bytes(length, "little"):
            part = self._socket.recv(1 << 16)
            if not part:
                raise EOFError("the child is gone")
            message += part
        parcel = pickle.loads(message)
        with placement.loading(parcel, fds):
            return pickle.loads(parcel.pickled)

    def close(self) -> None:
        self._socket.close()
        assert self._process.wait(TIMEOUT) == 0


class Notebook:
    """A namespace, and runs of code in children that share it."""

    def __init__(self, children: list[Child]) -> None:
        self.namespace: dict[str, Any] = {}
        self.out: dict[int, Any] = {}
        self.segments = Segments()
        self.mirrored: list[tuple[int, int]] = []
        self._children = children

    def __setitem__(self, name: str, value: Any) -> None:
        self.namespace[name] = value

    def __getitem__(self, name: str) -> Any:
        return self.namespace[name]

    def place(
        self, *wanted: str, is_shared: Callable[[Any], bool] = lambda _: True
    ) -> tuple[bytes, Placement]:
        names = NotebookNames(self.namespace, self.out)
        buffers = Buffers()
        payload = pickled({name: self.namespace[name] for name in wanted}, buffers, is_shared)
        return payload, place(buffers, names=names, segments=self.segments, reserved=64, results=2)

    def run(
        self, code: str, *wanted: str, ranks: int = 1, is_shared: Callable[[Any], bool] = lambda _: True
    ) -> list[Any]:
        """Run code in children on the names; `result` is what it binds."""
        payload, placement = self.place(*wanted, is_shared=is_shared)
        self.mirrored = placement.mirrored()
        with placement:
            try:
                for rank, child in enumerate(self._children[:ranks]):
                    child.send(payload, placement, f"rank = {rank}\n{code}", rank)
                outcomes = [child.receive(placement) for child in self._children[:ranks]]
            finally:
                placement.copy_back()
        return _results(outcomes)

    def run_in_turn(self, code: str, *wanted: str) -> list[Any]:
        """Run code in one child after the other, in one run."""
        payload, placement = self.place(*wanted)
        outcomes = []
        with placement:
            try:
                for rank, child in enumerate(self._children):
                    child.send(payload, placement, f"rank = {rank}\n{code}")
                    outcomes.append(child.receive(placement))
            finally:
                placement.copy_back()
        return _results(outcomes)


def _results(outcomes: list[Any]) -> list[Any]:
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def memory_of(value: Any) -> int:
    return value.data_ptr() if isinstance(value, torch.Tensor) else value.__array_interface__["data"][0]


def in_segment(notebook: Notebook, value: Any) -> bool:
    return notebook.segments.find(memory_of(value), 1) is not None


def address_of(buffer: Any) -> int:
    """Return where the memory of a writeable buffer begins."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))
