"""The memory file that all ranks of a run share for what they must agree on: loops, and the run's lock."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from nbshm.wire.record_locks import RecordLocks
from nbshm.wire.run_lock import RunLock
from nbshm.wire.shared_loops import NOTHING, Range, SharedLoop

_FIRST_LOOP = 64  # bytes; the run's lock stands before


class Board:
    """One rank's view of the board. Whoever makes the board gives each rank a descriptor of it."""

    def __init__(self, descriptor: int, nprocs: int) -> None:
        self._records = RecordLocks(descriptor)
        self._nprocs = nprocs
        self._size = SharedLoop.size(nprocs)
        self._loops = threading.Lock()
        self.lock = RunLock(self._records)

    def close(self) -> None:
        """Give the descriptor back."""
        self._records.close()

    @property
    def is_open(self) -> bool:
        """Tell whether the run still goes on."""
        return self._descriptor >= 0

    @contextlib.contextmanager
    def loop(self, number: int) -> Iterator[SharedLoop]:
        """Hold the state of a loop, and write back how it was changed."""
        offset = _FIRST_LOOP + number * self._size
        with self._loops:
            self._records.acquire(offset, self._size)
            try:
                loop = SharedLoop.unpack(os.pread(self._descriptor, self._size, offset), self._nprocs)
                yield loop
                os.pwrite(self._descriptor, loop.pack(), offset)
            finally:
                self._records.release(offset, self._size)

    def held_by(self, rank: int) -> Range:
        """Return the positions of the items that a rank was working at, in the last loop where it was."""
        written = os.fstat(self._descriptor).st_size - _FIRST_LOOP
        for number in reversed(range(-(-written // self._size))):
            offset = _FIRST_LOOP + number * self._size
            loop = SharedLoop.unpack(os.pread(self._descriptor, self._size, offset), self._nprocs)
            if loop.held[rank]:
                return loop.held[rank]
        return NOTHING

    @property
    def _descriptor(self) -> int:
        return self._records.descriptor
