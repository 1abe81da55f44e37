"""Segments: shared memory without a name, handed from process to process as descriptors.

A segment is a memfd. /dev/shm does not limit it, nothing of it is left when the last process that maps it
is gone, and one holds any number of storages and arrays.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from bisect import bisect_right
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import DupFd
from typing import Any


class Segment(mmap.mmap):
    """A memfd, mapped for reading and writing.

    It is the base of every array and the owner behind every storage that lies in it. So it lives exactly as
    long as the last of them, and its descriptor `fd` as long as it does.
    """

    fd: int
    address: int
    nbytes: int

    @classmethod
    def create(cls, nbytes: int) -> Segment:
        """Make a new segment of that size; its pages are zero, and take no room before they are written."""
        fd = os.memfd_create("nbshm")
        try:
            os.ftruncate(fd, nbytes)
        except BaseException:
            os.close(fd)
            raise
        return cls.over(fd, nbytes)

    @classmethod
    def over(cls, fd: int, nbytes: int) -> Segment:
        """Map a segment that was made elsewhere, and own its descriptor from now on."""
        try:
            segment = cls(fd, nbytes)
        except BaseException:
            os.close(fd)
            raise
        segment.fd = fd
        segment.nbytes = nbytes
        segment.address = address_of(segment)
        weakref.finalize(segment, os.close, fd).atexit = False
        return segment

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as a descriptor, with the means of multiprocessing."""
        return _received, (DupFd(_sendable(self.fd)), self.nbytes)


class Segments:
    """The segments that this process maps, found by address; none is kept alive by being listed here."""

    def __init__(self) -> None:
        self._by_address: weakref.WeakValueDictionary[int, Segment] = weakref.WeakValueDictionary()
        self._addresses: list[int] = []

    def create(self, nbytes: int) -> Segment:
        """Make a new segment and list it."""
        return self.add(Segment.create(nbytes))

    def add(self, segment: Segment) -> Segment:
        """List a segment, and return it."""
        self._by_address[segment.address] = segment
        self._addresses = sorted(self._by_address.keys())
        return segment

    def find(self, address: int, nbytes: int) -> Segment | None:
        """Return the segment that holds all of that memory, if there is one."""
        before = bisect_right(self._addresses, address) - 1
        segment = self._by_address.get(self._addresses[before]) if before >= 0 else None
        if segment is None or address + nbytes > segment.address + segment.nbytes:
            return None
        return segment

    def __len__(self) -> int:
        return len(self._by_address)


def address_of(buffer: Any) -> int:
    """Return where the memory of a writeable buffer begins."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def _sendable(fd: int) -> int:
    """Return the descriptor, or a copy of it if this child is being given it already.

    The start of a process takes a list of distinct descriptors only; a copy lives as long as the process
    object.
    """
    popen = get_spawning_popen()
    if popen is None or fd not in getattr(popen, "_fds", ()):
        return fd
    copy = os.dup(fd)
    weakref.finalize(popen, os.close, copy).atexit = False
    return copy


def _received(handle: Any, nbytes: int) -> Segment:
    return Segment.over(handle.detach(), nbytes)
