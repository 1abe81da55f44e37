"""Huge pages for the memory of a process that forks again and again: its page table is quickly copied then.

A forkserver that has imported torch has 40 000 pages of its own. To copy their entries into a child, and to
drop them at its end, takes as long as all that a short cell does in between; with huge pages a third of that.
A page that a child writes to is copied alone, as before.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

_HUGE = 2 << 20
_COLLAPSE = 25  # MADV_COLLAPSE, of Linux 6.1; Python's mmap does not know it


def collapse_memory() -> None:
    """Put this process's private memory into huge pages, as far as the system does that."""
    if sys.platform != "linux":
        return
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start, stop in _private_memory():
        first, end = -(-start // _HUGE) * _HUGE, stop // _HUGE * _HUGE
        if first < end:
            madvise(first, end - first, _COLLAPSE)  # it fails on an older Linux, or if no huge page is free


def _private_memory() -> Iterator[tuple[int, int]]:
    """Yield the ranges that are writeable and belong to no file."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        where, access, _, _, inode, *name = line.split(maxsplit=5)
        if access == "rw-p" and inode == "0" and name in ([], ["[heap]"]):
            start, _, stop = where.partition("-")
            yield int(start, 16), int(stop, 16)
