"""How far a rank has come in its loops, told often enough to watch and seldom enough to cost nothing."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from nbshm.events import Event, Progress

T = TypeVar("T")

SECONDS = 0.1
"""Seconds between two reports of a loop: a view is drawn no more often."""

_CROWD = 8
"""With more ranks than this each reports less often, so that the kernel has no more to read."""


class LoopReports:
    """Tells of one rank's loops.

    A loop is told when it begins, now and then, and when it ends. One that begins right after another (an
    inner loop, run again and again) is told only if it lasts.
    """

    def __init__(self, rank: int, nprocs: int, say: Callable[[Event], None]) -> None:
        self.seconds = SECONDS * max(1.0, nprocs / _CROWD)
        self._rank = rank
        self._say = say
        self._numbers = itertools.count()
        self._process = os.getpid()
        self._next_beginning = 0.0

    def is_heard(self) -> bool:
        """Tell whether this process is the rank itself: a child that it forked has no way to the kernel."""
        return os.getpid() == self._process

    def report(self, label: str = "", total: float | None = None, *, shared: int | None = None) -> LoopReport:
        """Return what tells of a loop that is about to begin."""
        return LoopReport(self, next(self._numbers), label=label, total=total, shared=shared)

    def follow(self, items: Iterable[T], report: LoopReport) -> Iterator[T]:
        """Pass items on and tell how many have been done; stop where the loop is left."""
        done = 0
        report.begin()
        try:
            for item in items:
                yield item
                done += 1
                if time.monotonic() >= report.due:
                    report.tell(done)
        finally:
            report.end(done)

    def may_begin(self) -> bool:
        """Tell whether a loop that begins now may say so: the last that did was long enough ago."""
        now = time.monotonic()
        if now < self._next_beginning:
            return False
        self._next_beginning = now + self.seconds
        return True

    def tell(self, report: LoopReport, done: float, *, ended: bool) -> None:
        """Say how far a loop has come, unless this process is none of the run's."""
        if self.is_heard():
            progress = Progress(
                rank=self._rank,
                loop=report.number,
                label=report.label,
                done=_plain(done) or 0,
                total=_plain(report.total),
                shared=report.shared,
                detail=report.detail,
                ended=ended,
            )
            self._say(progress)


class LoopReport:
    """Tells of one loop; `due` is when it should be told again, by the monotonic clock."""

    __slots__ = ("_has_ended", "_reports", "_told", "detail", "due", "label", "number", "shared", "total")

    def __init__(
        self, reports: LoopReports, number: int, *, label: str, total: float | None, shared: int | None
    ) -> None:
        self._reports = reports
        self._told = self._has_ended = False
        self.number = number
        self.label = label
        self.total = total
        self.shared = shared
        self.detail = ""
        self.due = 0.0

    def begin(self) -> None:
        """Say that the loop begins, unless another has just done so."""
        self.due = time.monotonic() + self._reports.seconds
        if self._reports.may_begin():
            self.tell(0)

    def advance(self, done: float) -> None:
        """Begin, or say how far the loop has come if that is due."""
        if not self.due:
            self.begin()
        elif time.monotonic() >= self.due and not self._has_ended:
            self.tell(done)

    def tell(self, done: float) -> None:
        """Say how far the loop has come."""
        self._told = True
        self.due = time.monotonic() + self._reports.seconds
        self._reports.tell(self, done, ended=False)

    def end(self, done: float) -> None:
        """Say how far it came; one that was never told of has been too short to be seen."""
        if self._told and not self._has_ended:
            self._reports.tell(self, done, ended=True)
        self._has_ended = True


def _plain(count: float | None) -> float | None:
    """Return a count as Python's own number; None if it is none: bars are given infinity, and anything."""
    try:
        number = math.inf if count is None else float(count)
    except (TypeError, ValueError, OverflowError):
        return None
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
