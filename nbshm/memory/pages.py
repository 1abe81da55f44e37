"""Pages: a memfd and its mapping."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import weakref
from typing import Any

_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE, which the mmap module does not name
_BLOCK = 512  # the unit of `st_blocks`, whatever the block size is


class Pages(mmap.mmap):
    """A memfd, mapped for reading and writing; its descriptor `fd` is open as long as it is mapped.

    `touched` once there is memory behind them, `handed_on` once a process may map them whose end nbshm does
    not see.
    """

    fd: int
    address: int
    nbytes: int
    touched: bool
    handed_on: bool

    @classmethod
    def create(cls, nbytes: int) -> Pages:
        """Make as many new pages as it takes; they are zero, and take no room before they are written."""
        fd = os.memfd_create("nbshm")
        try:
            os.ftruncate(fd, -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE)
        except BaseException:
            os.close(fd)
            raise
        return cls.over(fd)

    @classmethod
    def over(cls, fd: int) -> Pages:
        """Map all pages of a memfd, and own their descriptor from now on."""
        try:
            pages = cls(fd, 0)
        except BaseException:
            os.close(fd)
            raise
        pages.fd = fd
        pages.nbytes = len(pages)
        pages.address = address_of(pages)
        pages.touched = pages.handed_on = False
        weakref.finalize(pages, os.close, fd).atexit = False
        return pages

    def populate(self) -> None:
        """Map all of them now, in a call: page by page, as they are touched, takes eight times as long.

        Before Linux 5.14 it can't be done, and they are mapped as they are touched.
        """
        with contextlib.suppress(OSError):
            self.madvise(_POPULATE_WRITE)

    @property
    def resident(self) -> int:
        """How many bytes of it have memory behind them."""
        return os.fstat(self.fd).st_blocks * _BLOCK


def address_of(buffer: Any) -> int:
    """Return where the memory of a writeable buffer begins."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))
