"""Let locks, semaphores and what is made of them reach workers although they were made for forked children.

What `multiprocessing.Lock()` and `Queue()` make where fork is the default start method rests on a semaphore
without a name, which only a forked child can find. Before such an object is pickled it is *re-seated* on a
semaphore with a name. The old one's memory page is mapped onto the new one too: whoever holds a bound
`acquire` of it, such as the feeder thread of a queue, goes on with the same semaphore as the workers.

That is safe only if nobody holds the semaphore, waits for it, or has it in a forked child of the kernel.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import active_children, get_context, synchronize
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

from nbshm.machine.shared_memory import DIRECTORY
from nbshm.refusals import Unsendable

_REMEDY = (
    'Make it with the context of the workers instead: mp.get_context("forkserver").Queue(), '
    "or Lock(), Event(), Barrier(), Value(), ..."
)
_RECURSIVE = 0  # multiprocessing.synchronize.RECURSIVE_MUTEX
_SEAT = "_nbshm_seat"
_PATIENCE = 0.5  # seconds that a lock may be held by somebody who is about to release it
_LONG = 60.0  # seconds; longer than anything here takes
_MAP_FIXED = 0x10  # of Linux, on every architecture that Python runs on


def semaphore_reducers(begin_file: Callable[[str], None]) -> dict[type, Callable[[Any], Any]]:
    """Return the reducers that make objects of the fork context travel, for a pickler's dispatch table.

    Conditions, events, barriers, queues and shared values hold objects of these types. `begin_file` is told
    of each file that is made: multiprocessing's resource tracker removes it too, but is killed with the
    kernel's group.
    """
    kinds = (
        synchronize.Lock,
        synchronize.RLock,
        synchronize.Semaphore,
        synchronize.BoundedSemaphore,
    )
    return dict.fromkeys(kinds, functools.partial(_reduce, begin_file))


def _reduce(begin_file: Callable[[str], None], lock: synchronize.SemLock) -> Any:
    """Reduce a lock or semaphore as multiprocessing does, by the name that it has or is given now."""
    if _semlock(lock).name is None:
        return rebuild_semaphore, (type(lock), _seat(lock, begin_file).__getstate__())
    return lock.__reduce_ex__(2)


def rebuild_semaphore(kind: type[synchronize.SemLock], state: Any) -> synchronize.SemLock:
    """Make a lock or semaphore of that kind on the named one that the state tells."""
    lock = kind.__new__(kind)
    lock.__setstate__(state)  # type: ignore[attr-defined]  # typeshed leaves it out
    return lock


def _seat(lock: Any, begin_file: Callable[[str], None]) -> Any:
    """Return the named semaphore that a lock of the fork context rests on; made once, it goes with it."""
    if not hasattr(lock, _SEAT):
        seat = _reseat(_semlock(lock))
        begin_file(_file(seat))
        setattr(lock, _SEAT, seat)
    return getattr(lock, _SEAT)


def _reseat(old: Any) -> synchronize.SemLock:
    """Let a semaphore without a name be one with a name; raise `Unsendable` where that would not be safe."""
    _refuse_if_unsafe(old)
    _wait_until_free(old)
    seat = synchronize.SemLock(old.kind, 0, old.maxvalue, ctx=get_context("spawn"))
    new = _semlock(seat)
    fd = os.open(_file(seat), os.O_RDWR)
    try:
        with _no_other_thread():
            _refuse_if_in_use(old)
            _value_at(new.handle).value = _value_at(old.handle).value
            _map_onto(old.handle, fd)
    finally:
        os.close(fd)
    return seat


def _file(seat: synchronize.SemLock) -> str:
    return f"{DIRECTORY}/sem.{_semlock(seat).name.lstrip('/')}"


def _semlock(lock: synchronize.SemLock) -> Any:
    """Return the C object behind a lock; it and its methods have had these names since Python 2.6."""
    return lock._semlock  # type: ignore[attr-defined]  # noqa: SLF001  # see the docstring


def _wait_until_free(semlock: Any) -> None:
    """Give the feeder thread of a queue the time to finish: it holds the queue's lock while it writes."""
    if semlock.kind == _RECURSIVE and semlock._is_mine():  # noqa: SLF001  # see `_semlock`
        return  # acquiring it once more would prove nothing
    if _is_lock(semlock) and semlock.acquire(True, _PATIENCE):  # noqa: FBT003  # it takes no names
        semlock.release()


@contextlib.contextmanager
def _no_other_thread() -> Iterator[None]:
    """Let no other thread run Python code inside the block, which must not give up the GIL itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_LONG)
    time.sleep(0)  # who waits for the GIL already does so with the old interval; from here on nobody does
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _refuse_if_unsafe(semlock: Any) -> None:
    if any(isinstance(child, ForkProcess) for child in active_children()):
        raise Unsendable("was made for forked processes, and some of these still run", _REMEDY)
    if not _is_understood(semlock):
        raise Unsendable("was made for forked processes", _REMEDY)


def _refuse_if_in_use(semlock: Any) -> None:
    if _value_at(semlock.handle).value == 0 and _is_lock(semlock):
        raise Unsendable("is held, or its holder has died", _REMEDY)
    if _value_at(semlock.handle + 4).value:
        raise Unsendable("was made for forked processes, and a thread of the notebook waits for it", _REMEDY)


def _is_lock(semlock: Any) -> bool:
    return bool(semlock.kind == _RECURSIVE or semlock.maxvalue == 1)


def _is_understood(semlock: Any) -> bool:
    """Tell whether the semaphore lies in memory as glibc and musl place it: first value, then waiters.

    `handle` is its address: the beginning of a page that sem_open has mapped from a file of its own.
    """
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    starts = {int(line.partition("-")[0], 16) for line in lines if f"{DIRECTORY}/" in line}
    value = semlock._get_value()  # noqa: SLF001  # see `_semlock`
    return semlock.handle in starts and _value_at(semlock.handle).value == value


def _value_at(address: int) -> ctypes.c_uint32:
    return ctypes.c_uint32.from_address(address)


def _map_onto(address: int, fd: int) -> None:
    """Let the page at `address` be that of the semaphore's file."""
    library = ctypes.PyDLL(None, use_errno=True)  # it keeps the GIL
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_size_t)
    access, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _MAP_FIXED
    if library.mmap(address, mmap.PAGESIZE, access, flags, fd, 0) != address:
        raise OSError(ctypes.get_errno(), "cannot map a semaphore")
