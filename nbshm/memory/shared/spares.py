"""Spares: pages whose use has ended, kept for the next that are needed.

The first touch of a page of shared memory costs several times what a copy into it costs. So pages that nobody
sees any more are not given back at once, but used again. How much is kept is what one of the last few runs
has filled, and at most a part of the memory that is left.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections import deque
from collections.abc import Callable

from nbshm.memory.shared import limits
from nbshm.memory.shared.pages import Pages

_LEAST = 2**20  # bytes: fewer are made as quickly as they are looked for
_MOST_PAGES = 16  # each has a descriptor
_RUNS = 8
_PART_OF_MEMORY = 4
_WASTE = 8  # pages may be an eighth bigger than what they are taken for


class Spares:
    """Pages to be used again; none before a run has said what it fills."""

    def __init__(self) -> None:
        self._kept: list[Pages] = []
        self._filled: deque[int] = deque(maxlen=_RUNS)
        self._limit = 0
        self._owner = os.getpid()
        # The end of a use may come in any thread, and between any two steps of this one.
        self._lock = threading.RLock()

    def expect(self, filled: int) -> None:
        """Note how many bytes a run has filled: as many may be kept when they are not used any more."""
        self._filled.append(filled)
        left = limits.memory_left()
        most = max(self._filled) + _MOST_PAGES * 2 * mmap.PAGESIZE  # segments end in pages that are not full
        with self._lock:
            self._limit = most if left is None else min(most, left.nbytes // _PART_OF_MEMORY)
            self._trim()

    def expect_more(self, filled: int) -> None:
        """Note how many bytes the last run has filled beside what it said."""
        self.expect((self._filled.pop() if self._filled else 0) + filled)

    def take_newest(self, count: int) -> list[Pages]:
        """Return so many pages of any size, or what there are."""
        with self._lock:
            if os.getpid() != self._owner:
                return []
            return [self._kept.pop() for _ in range(min(count, len(self._kept)))]

    def take(self, nbytes: int) -> Pages | None:
        """Return pages of about that size, at least as big, if there are any."""
        with self._lock:
            fitting = [pages for pages in self._kept if 0 <= pages.nbytes - nbytes <= nbytes // _WASTE]
            if not fitting or os.getpid() != self._owner:  # a forked child has the same pages as its parent
                return None
            found = min(fitting, key=lambda pages: pages.nbytes)
            self._kept.remove(found)
            return found

    def use_of(self, pages: Pages) -> Callable[[], None]:
        """Return what to call when a use of pages has ended, nobody seeing them any more."""
        began = _forks.count

        def ended() -> None:
            # A forked child sees for ever what was mapped when it began, and so does one that was given it.
            if pages.nbytes >= _LEAST and began == _forks.count and not pages.handed_on:
                self._keep(pages)

        return ended

    def clear(self) -> None:
        """Give all of them back, and keep no more until a run fills memory again."""
        with self._lock:
            self._filled.clear()
            self._limit = 0
            self._kept.clear()

    @property
    def nbytes(self) -> int:
        """How much is kept."""
        with self._lock:
            return sum(pages.nbytes for pages in self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def _keep(self, pages: Pages) -> None:
        pages.touched = True
        with self._lock:
            self._kept.append(pages)
            self._trim()

    def _trim(self) -> None:
        while self.nbytes > self._limit or len(self._kept) > _MOST_PAGES:
            del self._kept[0]


class _Forks:
    """How often this process has been forked, and that of which it is the child."""

    def __init__(self) -> None:
        self.count = 0
        os.register_at_fork(after_in_parent=self._note, after_in_child=self._note)

    def _note(self) -> None:
        self.count += 1


def count_forks() -> int:
    """Return how often this process has been forked so far."""
    return _forks.count


_forks = _Forks()  # as much a fact of the process as its pid
