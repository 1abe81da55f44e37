"""Copying raw memory, in several threads where one would be slow."""

from __future__ import annotations

import ctypes
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeAlias

from nbshm.memory.shared.pages import Pages
from nbshm.memory.shared.segments import Segment

_PIECE = 64 * 2**20
_PATIENCE = 1e-9  # seconds a byte: twice what touching small pages costs
_WORTH_THREADS = 32 * 2**20
_WORTH_A_CALL = 2**18
_MOST_THREADS = 4

_Way: TypeAlias = Callable[[int, int], object]
"""A way to copy a piece: from where in the whole, and how many bytes."""


def copy(*, to: int, source: int, nbytes: int) -> None:
    """Copy memory from address to address; the two ranges do not overlap.

    One piece for each thread: the C library passes the caches by only where it copies a lot in one call, and
    many small calls take twice as long.
    """

    def move(start: int, length: int) -> None:
        ctypes.memmove(to + start, source + start, length)

    threads = _threads()
    _share_out(nbytes, [move] * threads, piece=-(-nbytes // threads))


def fill(segment: Segment, offset: int, *, source: int, nbytes: int) -> None:
    """Copy memory from an address into a segment.

    Of pages that nobody has touched yet the first touch costs more than the copy. Of huge ones it costs
    little; without them, writing to the file costs half as much as touching, but only one thread at a time
    can write to a file. For 1 GiB: 0.6 s with one thread that touches, 0.3 s with one that writes, 0.25 s
    with one of each, 0.14 s with two that have huge pages made.
    """
    to = segment.address + offset
    if segment.pages.touched or nbytes < _WORTH_A_CALL:
        copy(to=to, source=source, nbytes=nbytes)
        return

    def touch(start: int, length: int) -> None:
        ctypes.memmove(to + start, source + start, length)

    def write(start: int, length: int) -> None:
        _write(segment.fd, offset + start, source + start, length)

    huge = _HugePages(segment.pages.make_huge)

    def touch_huge_or(way: _Way) -> _Way:
        return lambda start, length: (touch if huge.make(offset + start, length) else way)(start, length)

    ways = [touch_huge_or(way) for way in (write, *[touch] * (_threads() - 1))]
    _share_out(nbytes, ways, piece=min(_PIECE, -(-nbytes // len(ways))))


def map_touched(pages: Pages) -> None:
    """Map pages whose first touch was another process's, for writing, in as few calls as that takes.

    What lies in small ones is put into huge ones, as long as that takes no longer than to map it: then it
    takes no time at all to map it the next time.
    """
    pages.touched = True
    huge = _HugePages(pages.collapse)
    for start in range(0, pages.nbytes, _PIECE):
        if not huge.make(start, min(_PIECE, pages.nbytes - start)):
            break
    pages.populate()


class _HugePages:
    """Has huge pages made as long as that saves time: the system may have to tidy up for each of them."""

    def __init__(self, make: Callable[[int, int], bool]) -> None:
        self._make = make
        self._are_worth_it = True

    def make(self, start: int, nbytes: int) -> bool:
        """Make what huge pages begin among these bytes; return whether they are worth it."""
        if self._are_worth_it:
            began = time.perf_counter()
            made = self._make(start, nbytes)
            self._are_worth_it = made and time.perf_counter() - began < _PATIENCE * nbytes
        return self._are_worth_it


def _write(fd: int, position: int, source: int, length: int) -> None:
    contents: Any = (ctypes.c_char * length).from_address(source)
    left = memoryview(contents)
    while left:
        written = os.pwrite(fd, left, position)
        left, position = left[written:], position + written


def _share_out(nbytes: int, ways: Sequence[_Way], *, piece: int) -> None:
    """Have pieces copied in all these ways at once, the first here and each other in a thread."""
    first, *others = ways
    if nbytes < _WORTH_THREADS or not others:
        first(0, nbytes)
        return
    starts = deque(range(0, nbytes, piece))
    tasks: list[Future[None]] = []
    with ThreadPoolExecutor(len(others)) as threads:
        with suppress(RuntimeError):  # no more threads are to be had: what there are do all of it
            tasks.extend(threads.submit(_take_turns, way, starts, nbytes, piece) for way in others)
        _take_turns(first, starts, nbytes, piece)
    for done in tasks:
        done.result()


def _take_turns(way: _Way, starts: deque[int], nbytes: int, piece: int) -> None:
    while True:
        try:
            start = starts.popleft()
        except IndexError:
            return
        way(start, min(piece, nbytes - start))


def _threads() -> int:
    return min(_MOST_THREADS, len(os.sched_getaffinity(0)))
