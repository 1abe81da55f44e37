"""The memory file that all ranks of a run share for what they must agree on: loops, and the run's lock."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeVar

from nbshm.wire.first_items import FirstItems
from nbshm.wire.record_locks import RecordLocks
from nbshm.wire.run_lock import RunLock
from nbshm.wire.shared_loops import NOTHING, Range, SharedLoop

State = TypeVar("State", SharedLoop, FirstItems)

_FIRST_LOOP = 64  # bytes; the run's lock stands before


class Board:
    """One rank's view of the board. Whoever makes the board gives each rank a descriptor of it."""

    def __init__(self, descriptor: int, nprocs: int) -> None:
        self._records = RecordLocks(descriptor)
        self._nprocs = nprocs
        self._size = SharedLoop.size(nprocs)
        self._stride = self._size + FirstItems.size()  # which stand behind each loop's state
        self._loops = threading.Lock()
        self.lock = RunLock(self._records)

    def close(self) -> None:
        """Give the descriptor back."""
        self._records.close()

    @property
    def is_open(self) -> bool:
        """Tell whether the run still goes on."""
        return self._descriptor >= 0

    def loop(self, number: int) -> AbstractContextManager[SharedLoop]:
        """Hold the state of a loop, and write back how it was changed."""
        return self._held(self._offset(number), self._size, self._unpack)

    def first_items(self, number: int) -> AbstractContextManager[FirstItems]:
        """Hold what is known of the first items of a loop, and write back what was added."""
        return self._held(self._offset(number) + self._size, FirstItems.size(), FirstItems.unpack)

    def held_by(self, rank: int) -> Range:
        """Return the positions of the items that a rank was working at, in the last loop where it was."""
        written = os.fstat(self._descriptor).st_size - _FIRST_LOOP
        for number in reversed(range(-(-written // self._stride))):
            loop = self._unpack(os.pread(self._descriptor, self._size, self._offset(number)))
            if loop.held[rank]:
                return loop.held[rank]
        return NOTHING

    def _unpack(self, data: bytes) -> SharedLoop:
        return SharedLoop.unpack(data, self._nprocs)

    def _offset(self, number: int) -> int:
        return _FIRST_LOOP + number * self._stride

    @contextlib.contextmanager
    def _held(self, offset: int, size: int, unpack: Callable[[bytes], State]) -> Iterator[State]:
        with self._loops:
            self._records.acquire(offset, size)
            try:
                state = unpack(os.pread(self._descriptor, size, offset))
                yield state
                os.pwrite(self._descriptor, state.pack(), offset)
            finally:
                self._records.release(offset, size)

    @property
    def _descriptor(self) -> int:
        return self._records.descriptor
