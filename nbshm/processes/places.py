"""The page of memory on which a worker notes where it is, as its two sides write and read it."""

from __future__ import annotations

import mmap
import os

_SIZE = mmap.PAGESIZE


def new_page() -> int:
    """Make an empty page; return its descriptor."""
    fd = os.memfd_create("nbshm-place")
    os.ftruncate(fd, _SIZE)
    return fd


def write_place(page: mmap.mmap, place: str) -> None:
    """Write a place down over the last one."""
    data = place.encode()[: _SIZE - 1] + b"\0"
    page[: len(data)] = data


def read_place(fd: int) -> str | None:
    """Return what was written last; None where nothing was."""
    return os.pread(fd, _SIZE, 0).partition(b"\0")[0].decode(errors="replace") or None
