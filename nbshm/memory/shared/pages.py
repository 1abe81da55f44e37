"""Pages: a memfd and its mapping."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref

from nbshm.machine.memfds import new_memfd
from nbshm.memory.shared.raw_memory import (
    COLLAPSE,
    HUGE_PAGE,
    POPULATE,
    advise,
    map_privately,
    map_shared,
    round_up,
    unmap,
)
from nbshm.memory.shared.regions import ALIGNMENT

_BLOCK = 512  # the unit of `st_blocks`, whatever the block size is


class Pages:
    """A memfd, mapped for reading and writing as long as this lives; its descriptor `fd` is open as long.

    `touched` once there is memory behind them, `handed_on` once a process may map them whose end nbshm does
    not see.
    """

    def __init__(self, fd: int, nbytes: int) -> None:
        self.fd = fd
        self.nbytes = nbytes
        self.address = map_shared(fd, nbytes)
        self.touched = self.handed_on = False
        weakref.finalize(self, _give_back, self.address, nbytes, fd).atexit = False

    @classmethod
    def create(cls, nbytes: int) -> Pages:
        """Make as many new pages as it takes; they are zero, and take no room before they are written.

        Where that would be filled to the last byte there is one more: the next to use them may be as big, and
        begin later in its cache line.
        """
        fd = new_memfd("nbshm")
        try:
            os.ftruncate(fd, round_up(nbytes + ALIGNMENT, mmap.PAGESIZE))
        except BaseException:
            os.close(fd)
            raise
        return cls.over(fd)

    @classmethod
    def over(cls, fd: int) -> Pages:
        """Map all pages of a memfd, and own their descriptor from now on."""
        try:
            return cls(fd, os.fstat(fd).st_size)
        except BaseException:
            os.close(fd)
            raise

    def populate(self) -> None:
        """Map all of them now, in a call: page by page, as they are touched, takes eight times as long.

        Before Linux 5.14 it can't be done, and they are mapped as they are touched.
        """
        advise(self.address, self.nbytes, POPULATE)

    def make_huge(self, start: int, nbytes: int) -> bool:
        """Have huge pages behind some bytes that are zero yet, where such pages begin among them.

        Clearing and mapping a huge page costs a quarter of what the small ones do, in this process and in
        each that maps it later. Returns False where the system has none.
        """
        for begin in self._huge_pages_in(start, nbytes):
            ctypes.memset(self.address + begin, 0, 1)  # there must be something to collapse
        return self.collapse(start, nbytes)

    def collapse(self, start: int, nbytes: int) -> bool:
        """Have huge pages behind some bytes, with what is in them, where such pages begin among them.

        Takes as long as mapping the small ones, once. Returns False where the system has none.
        """
        huge = self._huge_pages_in(start, nbytes)
        return not huge or advise(self.address + huge.start, huge.stop - huge.start, COLLAPSE)

    def _huge_pages_in(self, start: int, nbytes: int) -> range:
        """Return where huge pages can begin among these bytes."""
        end = min(round_up(start + nbytes, HUGE_PAGE), self.nbytes)
        return range(round_up(start, HUGE_PAGE), end - end % HUGE_PAGE, HUGE_PAGE)

    def make_private(self) -> None:
        """Have what this process writes from now on seen by no other; its own memory is taken as it writes.

        Raises
        ------
        OSError
            The system does not let it.

        """
        map_privately(self.address, self.fd, self.nbytes)

    @property
    def resident(self) -> int:
        """How many bytes of it have memory behind them."""
        return os.fstat(self.fd).st_blocks * _BLOCK


def _give_back(address: int, nbytes: int, fd: int) -> None:
    unmap(address, nbytes)
    os.close(fd)
