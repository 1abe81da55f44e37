"""Old memory on its way back to the system: the work of a thread, while what it was moved for goes on.

To free a GiB that lies in small pages takes longer than to copy it, and a storage is freed with the lock of
the interpreter held. So the pages are given back without it, and the storage has nothing more to free.
"""

from __future__ import annotations

import mmap
import os
import threading
from contextlib import suppress

from nbshm.memory.shared.raw_memory import advise, round_up

_WORTH_A_THREAD = 32 * 2**20
_PIECE = 64 * 2**20  # what changes the process's mappings meanwhile waits for one


def release(holder: object, *, address: int, nbytes: int) -> None:
    """Free private memory that nobody looks at any more, by letting go of its last holder.

    What is worth it is freed after the return; until `wait_until_released` it may count as used.
    """
    if nbytes >= _WORTH_A_THREAD:
        with suppress(RuntimeError):  # no thread is to be had, or the interpreter ends: the caller frees it
            _Release(holder, address, nbytes).start()


def wait_until_released() -> None:
    """Wait until what was released is free."""
    for thread in threading.enumerate():
        if isinstance(thread, _Release):
            thread.join()


class _Release(threading.Thread):
    def __init__(self, holder: object, address: int, nbytes: int) -> None:
        super().__init__(name="nbshm-release", daemon=True)
        self._holder: object = holder
        self._begin = round_up(address, mmap.PAGESIZE)  # what else lies in the first page and the last stays
        self._end = (address + nbytes) // mmap.PAGESIZE * mmap.PAGESIZE

    def run(self) -> None:
        for start in range(self._begin, self._end, _PIECE):
            advise(start, min(_PIECE, self._end - start), mmap.MADV_DONTNEED)
        self._holder = None


# A forked child would keep what it shares with its parent then, and nobody would free it there.
os.register_at_fork(before=wait_until_released)
