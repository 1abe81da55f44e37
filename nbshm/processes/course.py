"""The course of a run: what its ranks have said, what must be done about it, how it ended.

Everything here is decided from events and the time that comes with them; nothing is done here.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from nbshm.events import Ended, Event, Exited, Failed, Interrupted, Result, Started
from nbshm.failures.lost_peers import tells_of_lost_peer
from nbshm.failures.reports import Died, Ending, Quit, Raised, RankFailure, Stopped
from nbshm.processes.endings import Ladder, Rung

# Ranks that fail alike do so within this many seconds: they are told as one failure then, not as one that
# failed and three that were stopped because of it.
SETTLE_SECONDS = 0.1

# Whoever has lost its connection to another rank is told after that one, if that one says why in this time.
PEER_SECONDS = 2.0

_INTERRUPTED = 128 + signal.SIGINT  # what a shell says of a program that SIGINT ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a run ended, and each of its ranks; failures are in the order in which they were seen."""

    ending: Ending
    failures: tuple[RankFailure, ...]
    stopped: tuple[Stopped, ...]
    exitcodes: tuple[int | None, ...]
    seconds: tuple[float | None, ...]


@dataclass(slots=True, kw_only=True)
class _Record:
    """What is known of one rank."""

    pid: int
    finished: bool = False
    spoke_last: bool = False
    rung: Rung | None = None
    ended: Ended | None = None


class Course:
    """One run, from its start to its verdict."""

    def __init__(self, pids: Sequence[int], *, grace: float, timeout: float | None) -> None:
        self._records = [_Record(pid=pid) for pid in pids]
        self.grace = grace
        self._timeout = timeout
        self._deadline: float | None = None
        self._ladder: Ladder | None = None
        self._ending: Ending = "finished"
        self._failures: list[RankFailure] = []
        self._losses: list[Raised] = []

    @property
    def living(self) -> list[int]:
        """The ranks whose processes have not ended."""
        return [rank for rank, record in enumerate(self._records) if record.ended is None]

    def see(self, event: Event, now: float) -> None:
        """Take in what happened; events that say nothing about the course are welcome too."""
        match event:
            case Started():
                self._start_clock(now)
            case Result(rank=rank):
                self._records[rank].finished = self._records[rank].spoke_last = True
            case Failed() | Exited() | Interrupted():
                self._hear_last_words(event, now)
            case Ended():
                self._bury(event, now)

    def interrupt(self, now: float) -> None:
        """End all ranks because the person has asked for it; the second time, at once."""
        self._end("interrupted", now)

    def stop(self, now: float) -> None:
        """End all ranks because the program has asked for it; the second time, at once."""
        self._end("stopped", now)

    def is_out_of_time(self, now: float) -> bool:
        """Tell whether the timeout is all that would end it now."""
        return self._ladder is None and self._deadline is not None and now >= self._deadline

    def due(self, now: float) -> list[Rung]:
        """Return what must be done to all living ranks now."""
        if self.is_out_of_time(now):
            self._end("timed out", now)
        rungs = [] if self._ladder is None else self._ladder.due(now)
        for rank in self.living if rungs else ():
            self._records[rank].rung = rungs[-1]
        return rungs

    def next_time(self) -> float | None:
        """Return when something may be due next; None if nothing will without an event."""
        return self._deadline if self._ladder is None else self._ladder.next_time()

    def verdict(self) -> Verdict:
        """Say how the run has ended, as far as it has."""
        ends = [record.ended for record in self._records]
        return Verdict(
            ending=self._ending,
            failures=tuple(self._failures or self._losses),
            stopped=tuple(self._stopped()),
            exitcodes=tuple(None if ended is None else ended.exitcode for ended in ends),
            seconds=tuple(None if ended is None else ended.seconds for ended in ends),
        )

    def _start_clock(self, now: float) -> None:
        if self._timeout is not None and self._deadline is None:
            self._deadline = now + self._timeout

    def _end(self, ending: Ending, now: float) -> None:
        if self._ladder is None:
            self._ending = ending
            self._ladder = Ladder(start=now, grace=self.grace)
        elif self._ladder.has_begun(now):
            self._ladder.hurry(now)
        else:
            self._ladder.begin_by(now)

    def _hear_last_words(self, event: Failed | Exited | Interrupted, now: float) -> None:
        record = self._records[event.rank]
        record.spoke_last = True
        if record.rung is None:  # else it is what the ladder did to it, and no failure of its own
            self._fail(_failure(event, record.pid), now)

    def _bury(self, event: Ended, now: float) -> None:
        record = self._records[event.rank]
        record.ended = event
        in_order = record.finished and (event.exitcode == 0 or event.is_lost)
        if record.rung is None and not in_order and (record.finished or not record.spoke_last):
            self._fail(_death(event, record.pid), now)

    def _fail(self, failure: RankFailure, now: float) -> None:
        if isinstance(failure, Raised) and tells_of_lost_peer(failure.report):
            self._losses.append(failure)
            self._end_as_failed(now + PEER_SECONDS)
        else:
            self._failures.append(failure)
            self._end_as_failed(now + SETTLE_SECONDS)

    def _end_as_failed(self, by: float) -> None:
        if self._ladder is None:
            self._ending = "failed"
            self._ladder = Ladder(start=by, grace=self.grace)
        else:
            self._ladder.begin_by(by)

    def _stopped(self) -> list[Stopped]:
        failed = {failure.rank for failure in [*self._failures, *self._losses]}
        ended = [
            Stopped(rank=rank, by=_stopped_by(record.ended), line=record.ended.last_line)
            for rank, record in enumerate(self._records)
            if record.rung and record.ended and not record.finished and rank not in failed
        ]
        lost = [
            Stopped(rank=loss.rank, by="the loss of its peer", line=loss.report.where)
            for loss in (self._losses if self._failures else ())
        ]
        return sorted([*ended, *lost], key=lambda stop: stop.rank)


def _failure(event: Failed | Exited | Interrupted, pid: int) -> RankFailure:
    match event:
        case Failed(rank=rank, report=report, preparing=preparing):
            return Raised(rank=rank, pid=pid, report=report, preparing=preparing)
        case Exited(rank=rank, code=code, text=text, line=line):
            return Quit(rank=rank, pid=pid, exitcode=code, text=text, line=line)
        case Interrupted(rank=rank):
            text = "it was interrupted by a signal that did not come from the notebook"
            return Quit(rank=rank, pid=pid, exitcode=_INTERRUPTED, text=text)


def _death(event: Ended, pid: int) -> Died:
    return Died(
        rank=event.rank,
        pid=pid,
        exitcode=event.exitcode,
        is_lost=event.is_lost,
        seconds=event.seconds,
        line=event.last_line,
        circumstances=event.circumstances,
        dump=event.dump,
    )


def _stopped_by(ended: Ended) -> str:
    if ended.exitcode in {-signal.SIGTERM, -signal.SIGKILL}:
        return signal.Signals(-ended.exitcode).name
    return "interrupt"
