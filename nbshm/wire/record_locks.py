"""POSIX record locks on a file, which the system gives up for a process that dies.

They exclude processes from each other, not threads: a thread lock stands before each.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

MOMENT = 0.001
"""Seconds between two attempts, where the system itself can't wait."""

_TAKEN = frozenset({errno.EAGAIN, errno.EACCES, errno.EDEADLK})


class RecordLocks:
    """The locks of one descriptor, which is closed with them."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def close(self) -> None:
        """Give up all that is locked, and the descriptor."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def acquire(self, offset: int, length: int) -> None:
        """Wait until these bytes are locked for this process."""
        # The system takes a process for one thread: two threads here and two there, one of each in a lock
        # and one waiting, look like a deadlock to it. Who holds a loop waits for nothing, so this passes.
        while not self._attempt(fcntl.LOCK_EX, offset, length):
            time.sleep(MOMENT)

    def try_to_acquire(self, offset: int, length: int) -> bool:
        """Lock these bytes if no other process has done so; tell whether they are locked now."""
        return self._attempt(fcntl.LOCK_EX | fcntl.LOCK_NB, offset, length)

    def release(self, offset: int, length: int) -> None:
        """Unlock bytes; those of a descriptor that is closed are unlocked already."""
        if self.descriptor >= 0:
            fcntl.lockf(self.descriptor, fcntl.LOCK_UN, length, offset)

    def _attempt(self, operation: int, offset: int, length: int) -> bool:
        try:
            fcntl.lockf(self.descriptor, operation, length, offset)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            return False
        return True
