"""What a rank waits for, said when it has waited for a moment, from looks at its stack.

The barrier is not among it: a rank itself says that it has arrived there. Waits that are over sooner are not
worth a message, and code that takes a lock a thousand times a second is not slowed by them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType

from nbshm.events import Event, Resumed, Waiting
from nbshm.failures.frames import Frame
from nbshm.failures.waits import BARRIER, what_it_waits_for

MOMENT = 0.2
"""Seconds that a wait lasts before it is told."""


class WaitNotices:
    """Notices what the thread that is looked at waits for; `cells` are the numbers of cells by file name."""

    def __init__(self, rank: int, cells: Mapping[str, int], say: Callable[[Event], None]) -> None:
        self._rank = rank
        self._cells = cells
        self._say = say
        self._what: str | None = None
        self._since = 0.0
        self._is_told = False

    def look(self, frame: FrameType | None) -> None:
        """Take a look at where the thread is."""
        wait = what_it_waits_for(list(self._frames(frame))[::-1])
        what = None if wait is None or wait is BARRIER else wait.what
        if what != self._what:
            self._change(what)
        elif what is not None and not self._is_told and time.monotonic() - self._since >= MOMENT:
            self._is_told = True
            self._say(Waiting(rank=self._rank, at=what))

    def _change(self, what: str | None) -> None:
        if self._is_told:
            self._say(Resumed(rank=self._rank))
        self._what, self._since, self._is_told = what, time.monotonic(), False

    def _frames(self, frame: FrameType | None) -> Iterator[Frame]:
        """Yield the frames from the innermost outwards, up to the first of the notebook's."""
        while frame is not None:
            code = frame.f_code
            cell = self._cells.get(code.co_filename)
            yield Frame(filename=code.co_filename, line=0, function=code.co_name, text="", cell=cell)
            frame = None if cell is not None else frame.f_back
