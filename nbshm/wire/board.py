"""The memory file that all ranks of a run share for what they must agree on: loops, and the run's lock.

Its locks are POSIX record locks, which the system gives up for a process that dies. They exclude processes
from each other, not threads: a thread lock stands before each.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator

from nbshm.wire.shared_loops import NOTHING, Range, SharedLoop

_USERS_LOCK = 0  # the byte that stands for `nbshm.lock()`
_FIRST_LOOP = 64
_MOMENT = 0.001  # seconds


class Board:
    """One rank's view of the board. Whoever makes the board gives each rank a descriptor of it."""

    def __init__(self, descriptor: int, nprocs: int) -> None:
        self._descriptor = descriptor
        self._nprocs = nprocs
        self._size = SharedLoop.size(nprocs)
        self._loops = threading.Lock()
        self._users = threading.RLock()
        self._depth = 0

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def is_open(self) -> bool:
        """Tell whether the run still goes on."""
        return self._descriptor >= 0

    @contextlib.contextmanager
    def loop(self, number: int) -> Iterator[SharedLoop]:
        """Hold the state of a loop, and write back how it was changed."""
        offset = _FIRST_LOOP + number * self._size
        with self._loops, self._locked(offset, self._size):
            loop = SharedLoop.unpack(os.pread(self._descriptor, self._size, offset), self._nprocs)
            yield loop
            os.pwrite(self._descriptor, loop.pack(), offset)

    def held_by(self, rank: int) -> Range:
        """Return the positions of the items that a rank was working at, in the last loop where it was."""
        written = os.fstat(self._descriptor).st_size - _FIRST_LOOP
        for number in reversed(range(-(-written // self._size))):
            offset = _FIRST_LOOP + number * self._size
            loop = SharedLoop.unpack(os.pread(self._descriptor, self._size, offset), self._nprocs)
            if loop.held[rank]:
                return loop.held[rank]
        return NOTHING

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run's lock, which one thread of one rank has at a time; it may enter again."""
        with self._users:
            if self._depth:  # a record lock that is taken twice is given up with the first unlocking
                yield
                return
            with self._locked(_USERS_LOCK, 1):
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1

    @contextlib.contextmanager
    def _locked(self, offset: int, length: int) -> Iterator[None]:
        self._acquire(offset, length)
        try:
            yield
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, length, offset)

    def _acquire(self, offset: int, length: int) -> None:
        while not self._try_to_acquire(offset, length):
            time.sleep(_MOMENT)

    def _try_to_acquire(self, offset: int, length: int) -> bool:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX, length, offset)
        except OSError as error:
            # The system takes a process for one thread: two threads here and two there, one of each in a lock
            # and one waiting, look like a deadlock to it. Who holds a loop waits for nothing, so this passes.
            if error.errno != errno.EDEADLK:
                raise
            return False
        return True
