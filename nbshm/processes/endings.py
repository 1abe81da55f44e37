"""The ladder by which a rank is ended, for failure elsewhere, interrupt, timeout and stop alike.

*Order of endings.* First KeyboardInterrupt in the rank's code, so that its `finally` blocks run; after the
grace period SIGTERM, for code that swallows it or sits in C; a second later SIGKILL, which a stopped process
and one that ignores SIGTERM obey too. Who is in a hurry skips to SIGKILL. The rank's own children, what is
left of its process group, are killed when its process has ended.
"""

from __future__ import annotations

import enum
import signal

from nbshm.processes.workers import Worker

TERM_SECONDS = 1.0
"""Seconds between SIGTERM and SIGKILL: its default is immediate, only a handler of the code takes time."""


class Rung(enum.IntEnum):
    """One step of the ladder; a later one is harder."""

    INTERRUPT = 1
    TERMINATE = 2
    KILL = 3


class Ladder:
    """When each rung is due. It knows nothing but the time that it is told."""

    def __init__(self, *, start: float, grace: float) -> None:
        self._grace = grace
        self._reached = 0
        self._times = _times(start, grace)

    def begin_by(self, now: float) -> None:
        """Let the first rung be due now, unless it has been already."""
        if now < self._times[Rung.INTERRUPT]:
            self._times = _times(now, self._grace)

    def hurry(self, now: float) -> None:
        """Skip to the last rung."""
        self._times = dict.fromkeys(Rung, now)
        self._reached = max(self._reached, Rung.TERMINATE)

    def has_begun(self, now: float) -> bool:
        """Tell whether the first rung has been due."""
        return now >= self._times[Rung.INTERRUPT]

    def due(self, now: float) -> list[Rung]:
        """Return the rungs that have become due since this was asked last, in order."""
        rungs = [rung for rung in Rung if self._reached < rung and self._times[rung] <= now]
        self._reached = max([self._reached, *rungs])
        return rungs

    def next_time(self) -> float | None:
        """Return when the next rung is due; None after the last."""
        return min((time for rung, time in self._times.items() if rung > self._reached), default=None)


def step(worker: Worker, rung: Rung) -> None:
    """Do to a worker what the rung says; one that has ended already is left alone."""
    match rung:
        case Rung.INTERRUPT:
            worker.send_signal(signal.SIGINT)
        case Rung.TERMINATE:
            worker.send_signal(signal.SIGTERM)
        case Rung.KILL:
            worker.send_signal(signal.SIGKILL)


def _times(start: float, grace: float) -> dict[Rung, float]:
    return {
        Rung.INTERRUPT: start,
        Rung.TERMINATE: start + grace,
        Rung.KILL: start + grace + TERM_SECONDS,
    }
