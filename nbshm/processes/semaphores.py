"""Let locks, semaphores and what is made of them reach workers although they were made for forked children.

What `multiprocessing.Lock()` and `Queue()` make where fork is the default start method rests on a semaphore
without a name, which only a forked child can find. Before such an object is pickled it is *re-seated* on a
semaphore with a name. The old one's memory page is mapped onto the new one too: whoever holds a bound
`acquire` of it, such as the feeder thread of a queue, goes on with the same semaphore as the workers.

That is safe only if nobody holds the semaphore, waits for it, or has it in a forked child of the kernel.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable
from multiprocessing import active_children, get_context, synchronize
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

from nbshm.refusals import Unsendable

_DIRECTORY = "/dev/shm/"  # noqa: S108  # where sem_open of Linux keeps its files
_REMEDY = (
    'Make it with the context of the workers instead: mp.get_context("forkserver").Queue(), '
    "or Lock(), Event(), Barrier(), Value(), ..."
)
_RECURSIVE = 0  # multiprocessing.synchronize.RECURSIVE_MUTEX


def semaphore_reducers() -> dict[type, Callable[[Any], Any]]:
    """Return the reducers that make objects of the fork context travel, for a pickler's dispatch table.

    Conditions, events, barriers, queues and shared values hold objects of these types.
    """
    kinds = (
        synchronize.Lock,
        synchronize.RLock,
        synchronize.Semaphore,
        synchronize.BoundedSemaphore,
    )
    return dict.fromkeys(kinds, reduce_semaphore)


def reduce_semaphore(lock: synchronize.SemLock) -> Any:
    """Reduce a lock or semaphore as multiprocessing does, after re-seating it if it needs that."""
    if _semlock(lock).name is None:
        reseat(lock)
    return lock.__reduce_ex__(2)


def reseat(lock: synchronize.SemLock) -> None:
    """Give a semaphore of the fork context a name; raise `Unsendable` where that would not be safe."""
    old = _semlock(lock)
    value = old._get_value()  # noqa: SLF001  # multiprocessing reads it so itself
    _refuse_if_in_use(old, value)
    # `__init__` once more, as for a context that needs names: it makes, registers and one day unlinks the
    # semaphore.
    synchronize.SemLock.__init__(lock, old.kind, value, old.maxvalue, ctx=get_context("spawn"))
    _map_onto(old.handle, _semlock(lock).name)


def _semlock(lock: synchronize.SemLock) -> Any:
    """Return the C object behind a lock; multiprocessing has kept it under this name since Python 2.6."""
    return lock._semlock  # type: ignore[attr-defined]  # noqa: SLF001  # see the docstring


def _refuse_if_in_use(semlock: Any, value: int) -> None:
    if value == 0 and (semlock.kind == _RECURSIVE or semlock.maxvalue == 1):
        raise Unsendable("is held, or its holder has died", _REMEDY)
    if not _is_understood(semlock.handle, value):
        raise Unsendable("was made for forked processes", _REMEDY)
    if _waiters(semlock.handle):
        raise Unsendable("was made for forked processes, and a thread of the notebook waits for it", _REMEDY)
    if any(isinstance(child, ForkProcess) for child in active_children()):
        raise Unsendable("was made for forked processes, and some of these still run", _REMEDY)


def _is_understood(handle: int, value: int) -> bool:
    """Tell whether the semaphore lies in memory as glibc and musl place it: first value, then waiters.

    `handle` is its address: the beginning of a page that sem_open has mapped from a file of its own.
    """
    starts = {int(line.split("-", 1)[0], 16) for line in _maps() if _DIRECTORY in line}
    return handle in starts and ctypes.c_uint32.from_address(handle).value == value


def _maps() -> list[str]:
    maps = Path("/proc/self/maps")
    return maps.read_text().splitlines() if maps.exists() else []


def _waiters(handle: int) -> int:
    return ctypes.c_uint32.from_address(handle + 4).value


def _map_onto(address: int, name: str) -> None:
    """Let the page at `address` be that of the named semaphore."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_size_t)
    fd = os.open(f"{_DIRECTORY}sem.{name.lstrip('/')}", os.O_RDWR)
    try:
        flags = mmap.MAP_SHARED | _MAP_FIXED
        mapped = library.mmap(address, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, flags, fd, 0)
    finally:
        os.close(fd)
    if mapped != address:
        raise OSError(ctypes.get_errno(), "cannot map a semaphore")


_MAP_FIXED = 0x10  # of Linux, on every architecture that Python runs on
