"""The lock of a run, which one thread of one rank has at a time."""

from __future__ import annotations

import threading
import time

from nbshm.wire.record_locks import MOMENT, RecordLocks

_BYTE = 0  # of the board, which stands for this lock


class RunLock:
    """What `nbshm.lock()` gives a rank: used as `threading.RLock()` is, and free when the rank dies."""

    def __init__(self, records: RecordLocks) -> None:
        self._records = records
        self._threads = threading.RLock()
        self._holder: int | None = None
        self._depth = 0  # a record lock that is taken twice is given up with the first unlocking

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002  # as in threading
        """Take the lock, and tell whether it is this thread's now; it may be taken again.

        `timeout` are seconds; -1 waits as long as it takes. Raises ValueError where the two contradict.
        """
        until = None if blocking and timeout < 0 else time.monotonic() + max(timeout, 0)
        if not self._threads.acquire(blocking, timeout):
            return False
        if self._depth == 0 and not self._take(until):
            return False
        self._holder = threading.get_ident()
        self._depth += 1
        return True

    def release(self) -> None:
        """Give it back, once for each time that it was taken; RuntimeError if this thread has it not."""
        if self._holder != threading.get_ident():
            raise RuntimeError("lock: this thread does not have it, so it has nothing to release")
        self._depth -= 1
        if self._depth == 0:
            self._holder = None
            self._records.release(_BYTE, 1)
        self._threads.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _take(self, until: float | None) -> bool:
        """Take it from the other ranks; the threads of this rank have it back if that fails."""
        taken = False
        try:
            taken = self._wait(until)
        finally:
            if not taken:  # it took too long, or was interrupted
                self._threads.release()
        return taken

    def _wait(self, until: float | None) -> bool:
        if until is None:
            self._records.acquire(_BYTE, 1)
            return True
        while not self._records.try_to_acquire(_BYTE, 1):
            if time.monotonic() >= until:
                return False
            time.sleep(MOMENT)
        return True
