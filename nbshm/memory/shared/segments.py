"""Segments: shared memory without a name, handed from process to process as descriptors.

A segment lies in a memfd. /dev/shm does not limit it, nothing of it is left when the last process that maps
it is gone, and one holds any number of storages and arrays.

Memory is moved to segments behind the back of the person's code. A child that this code forks, a pool's or a
DataLoader's worker, has a copy of it as of all other memory, unless it was asked to be shared.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import reduction
from multiprocessing.context import get_spawning_popen
from typing import Any, TypeAlias

from nbshm.memory.shared.pages import Pages
from nbshm.memory.shared.spares import Spares, count_forks
from nbshm.rank_forks import is_new_rank

# Not a memoryview, which numpy looks through: its arrays would keep the pages, and not the use of them.
RawBuffer: TypeAlias = "ctypes.Array[ctypes.c_ubyte]"


@dataclass(frozen=True, kw_only=True, eq=False)
class Segment:
    """One use of pages, from the first of them on.

    Its buffer is the base of every array and the owner behind every storage that lies in it. So the use ends
    exactly with the last of them.
    """

    __slots__ = ("__weakref__", "buffer", "pages")

    buffer: RawBuffer
    pages: Pages

    @classmethod
    def create(cls, nbytes: int) -> Segment:
        """Make a new segment of that size."""
        return cls.on(Pages.create(nbytes), nbytes)

    @classmethod
    def over(cls, fd: int, nbytes: int) -> Segment:
        """Map a segment that was made elsewhere, and own its descriptor from now on."""
        return cls.on(Pages.over(fd), nbytes)

    @classmethod
    def on(cls, pages: Pages, nbytes: int) -> Segment:
        """Begin a use of pages."""
        buffer: RawBuffer = (ctypes.c_ubyte * nbytes).from_address(pages.address)
        buffer.pages = pages  # type: ignore[attr-defined]  # who has the buffer keeps them mapped
        buffer.forks_before = count_forks()  # type: ignore[attr-defined]  # likewise kept with it
        buffer.stays_shared = False  # type: ignore[attr-defined]  # likewise
        return cls._of(buffer)

    @classmethod
    def used_by(cls, buffer: RawBuffer) -> Segment:
        """Return the segment of that buffer, the same one while anybody has it.

        A pickle of thousands of storages in it has it once, and needs one descriptor.
        """
        return buffer.segment() or cls._of(buffer)  # type: ignore[attr-defined]  # see `_of`

    @classmethod
    def _of(cls, buffer: RawBuffer) -> Segment:
        segment = cls(buffer=buffer, pages=buffer.pages)  # type: ignore[attr-defined]  # as above
        buffer.segment = weakref.ref(segment)  # type: ignore[attr-defined]  # likewise
        return segment

    @property
    def fd(self) -> int:
        """The descriptor of its memfd, which tells one segment from another."""
        return self.pages.fd

    @property
    def address(self) -> int:
        """Where it is mapped."""
        return self.pages.address

    @property
    def nbytes(self) -> int:
        """Its size, which may be less than that of its pages."""
        return len(self.buffer)

    @property
    def may_be_seen_by_others(self) -> bool:
        """Tell whether it was handed on from here, or mapped when this process was forked."""
        return self.pages.handed_on or self.buffer.forks_before != count_forks()  # type: ignore[attr-defined]  # as above

    @property
    def stays_shared(self) -> bool:
        """Whether children that the person's code forks share it."""
        return bool(self.buffer.stays_shared)  # type: ignore[attr-defined]  # see `on`

    def stay_shared(self) -> None:
        """Have children that the person's code forks share it: that was asked for."""
        self.buffer.stays_shared = True  # type: ignore[attr-defined]  # see `on`

    def holds(self, address: int, nbytes: int) -> bool:
        """Tell whether all of that memory lies in it."""
        return self.address <= address and address + nbytes <= self.address + self.nbytes

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as a descriptor, with the means of multiprocessing."""
        self.pages.handed_on = True
        return _received, (reduction.DupFd(_sendable(self.fd)), self.nbytes)


_all_segments: weakref.WeakSet[Segments] = weakref.WeakSet()


class Segments:
    """The segments that this process maps, found by address; none is kept alive by being listed here.

    Pages whose use has ended go to `spares`.
    """

    def __init__(self) -> None:
        self.spares = Spares()
        self._by_address: weakref.WeakValueDictionary[int, RawBuffer] = weakref.WeakValueDictionary()
        self._addresses: list[int] = []
        self._listing = threading.Lock()  # results of a background run come in its own thread
        _all_segments.add(self)

    def create(self, nbytes: int) -> Segment:
        """Return a listed segment with anything in it, which takes no time to write to if it is a spare."""
        pages = self.spares.take(nbytes)
        return self.create_zeroed(nbytes) if pages is None else self.add(Segment.on(pages, nbytes))

    def create_zeroed(self, nbytes: int) -> Segment:
        """Make a new segment of zeros and list it."""
        return self.add(Segment.create(nbytes))

    def use_spares(self, count: int) -> list[Segment]:
        """Return so many listed segments of any size, for what is not known yet, or what spares there are."""
        return [self.add(Segment.on(pages, pages.nbytes)) for pages in self.spares.take_newest(count)]

    def add(self, segment: Segment) -> Segment:
        """List a segment, and return it."""
        with self._listing:
            self._by_address[segment.address] = segment.buffer
            self._addresses = sorted(self._by_address.keys())
        ended = self.spares.use_of(segment.pages)
        weakref.finalize(segment.buffer, ended).atexit = False
        return segment

    def find(self, address: int, nbytes: int) -> Segment | None:
        """Return the segment that holds all of that memory, if there is one."""
        addresses = self._addresses
        before = bisect_right(addresses, address) - 1
        buffer = self._by_address.get(addresses[before]) if before >= 0 else None
        if buffer is None or address + nbytes > addresses[before] + len(buffer):
            return None
        return Segment.used_by(buffer)

    def copy(self) -> None:
        """Have copies, in a forked child, of all but what stays shared: memory like any other from now on."""
        self._listing = threading.Lock()  # a thread that is not here may hold the other
        for address, buffer in list(self._by_address.items()):
            if not buffer.stays_shared:  # type: ignore[attr-defined]  # see `Segment.on`
                with contextlib.suppress(OSError):  # there is nobody here whom an error would help
                    buffer.pages.make_private()  # type: ignore[attr-defined]  # likewise
                    del self._by_address[address]
        self._addresses = sorted(self._by_address.keys())

    def __iter__(self) -> Iterator[Segment]:
        return (Segment.used_by(buffer) for buffer in list(self._by_address.values()))

    def __len__(self) -> int:
        return len(self._by_address)


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


def _copy_in_forked_child() -> None:
    if not is_new_rank():
        for segments in list(_all_segments):
            segments.copy()


os.register_at_fork(after_in_child=_copy_in_forked_child)
