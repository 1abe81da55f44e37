"""Mappings as the system makes them, where Python's mmap does not reach: their address, huge pages."""

from __future__ import annotations

import ctypes
import mmap
import os

HUGE_PAGE = 2 << 20
"""Bytes of a huge page, of most systems; where it is another number, huge pages are asked for in vain."""

COLLAPSE = 25
"""Advice to put memory into huge pages now, whatever the settings: MADV_COLLAPSE, of Linux 6.1."""

POPULATE = 23
"""Advice to map memory for writing now: MADV_POPULATE_WRITE, of Linux 5.14."""

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_LIBRARY.mmap.restype = ctypes.c_void_p
_LIBRARY.mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_ssize_t,
)
_LIBRARY.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_LIBRARY.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

_FAILED = ctypes.c_void_p(-1).value
_NO_ACCESS = 0
_FIXED = 0x10  # MAP_FIXED
_NO_RESERVE = 0x4000  # MAP_NORESERVE


def map_shared(fd: int, nbytes: int) -> int:
    """Map a file for reading and writing; return the address, where a huge page can begin if it may hold one.

    Raises
    ------
    OSError
        There is no room for it.

    """
    access = mmap.PROT_READ | mmap.PROT_WRITE
    if nbytes < HUGE_PAGE:
        return _map(None, nbytes, access, mmap.MAP_SHARED, fd)
    room = nbytes + HUGE_PAGE
    try:
        reserved = _map(None, room, _NO_ACCESS, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE, -1)
    except OSError:  # addresses are scarce (ulimit -v)
        return _map(None, nbytes, access, mmap.MAP_SHARED, fd)
    address = round_up(reserved, HUGE_PAGE)
    try:
        _map(address, nbytes, access, mmap.MAP_SHARED | _FIXED, fd)
    except OSError:
        unmap(reserved, room)
        raise
    end = round_up(address + nbytes, mmap.PAGESIZE)
    unmap(reserved, address - reserved)
    unmap(end, reserved + room - end)
    return address


def map_privately(address: int, fd: int, nbytes: int) -> None:
    """Map a file in the place of what is mapped there: what is written from now on is not seen by others.

    Raises
    ------
    OSError
        The system does not let it.

    """
    access = mmap.PROT_READ | mmap.PROT_WRITE
    _map(address, nbytes, access, mmap.MAP_PRIVATE | _FIXED | _NO_RESERVE, fd)


def unmap(address: int, nbytes: int) -> None:
    """Take a mapping back."""
    if nbytes:
        _LIBRARY.munmap(address, nbytes)


def advise(address: int, nbytes: int, advice: int) -> bool:
    """Give advice on memory; return whether the system knows it and has followed."""
    return bool(_LIBRARY.madvise(address, nbytes, advice) == 0)


def round_up(number: int, step: int) -> int:
    """Return the least multiple of `step` that is no less."""
    return -(-number // step) * step


def _map(address: int | None, nbytes: int, access: int, flags: int, fd: int) -> int:
    mapped = _LIBRARY.mmap(address, nbytes, access, flags, fd, 0)
    if mapped in {None, _FAILED}:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(mapped)
