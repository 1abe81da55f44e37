"""What each rank is doing, for how long, how far it has come and what it said last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from nbshm.events import (
    AT_BARRIER,
    Ended,
    Event,
    Exited,
    Failed,
    GpuMemory,
    Interrupted,
    Progress,
    Result,
    Resumed,
    Started,
    Waiting,
)
from nbshm.failures.reports import signal_name
from nbshm.views.gauges import Gauge, Usage, inherited_memory
from nbshm.views.paces import Pace, Paces

State: TypeAlias = Literal["starting", "running", "waiting", "finished", "failed", "stopped", "died"]

_OVER: tuple[State, ...] = ("finished", "failed", "stopped", "died")
_BETWEEN_READINGS = 1.0  # seconds; a share of a core means little over less


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is shown of one rank: `detail` goes with the state, `paces` are the loops that it is in."""

    rank: int
    state: State
    detail: str
    seconds: float
    last_line: str
    paces: tuple[Pace, ...] = ()
    usage: Usage | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in _OVER


@dataclass(slots=True)
class _Rank:
    state: State = "starting"
    detail: str = ""
    began: float = 0.0
    ended: float | None = None
    pid: int | None = None
    gauge: Gauge | None = None
    read: float = 0.0
    usage: Usage | None = None
    gpu: int | None = None


class Rows:
    """Follows the ranks of a run through its events."""

    def __init__(self, nprocs: int, now: float) -> None:
        self.began = now
        self._ranks = [_Rank(began=now) for _ in range(nprocs)]
        self._paces = Paces(nprocs)
        self._inherited: int | None = None  # by each rank, as all come from one parent

    def add(self, event: Event, now: float) -> None:
        """Take the next event."""
        match event:
            case Started(rank=rank, pid=pid):
                self._ranks[rank] = _Rank(state="running", began=now, pid=pid)
            case Waiting(rank=rank, at=at):
                self._set(rank, "waiting", "at the barrier" if at == AT_BARRIER else f"for {at}")
            case Resumed(rank=rank):
                self._set(rank, "running")
            case Progress():
                self._paces.add(event, now)
            case GpuMemory(rank=rank, nbytes=nbytes):
                self._ranks[rank].gpu = nbytes
            case _:
                self._end(event, now)

    def _end(self, event: Event, now: float) -> None:
        match event:
            case Result(rank=rank):
                self._close(rank, "finished", now)
            case Failed(rank=rank, report=report):
                self._close(rank, "failed", now, report.type_name)
            case Exited(rank=rank, code=code):
                self._close(rank, "failed", now, f"exit code {code}")
            case Interrupted(rank=rank):
                self._close(rank, "stopped", now)
            case Ended(rank=rank, exitcode=exitcode):
                cause = signal_name(-exitcode) if exitcode < 0 else f"exit code {exitcode}"
                self._close(rank, "finished" if exitcode == 0 else "died", now, cause)
            case _:
                pass

    def rows(self, now: float, last_lines: Iterable[str]) -> list[Row]:
        """Return what is to be shown of the ranks now."""
        return [self._row(rank, now, line) for rank, line in enumerate(last_lines)]

    def whole(self) -> Pace | None:
        """Return how far all ranks have come together; None where no loop tells."""
        return self._paces.whole(rank for rank, known in enumerate(self._ranks) if known.state == "finished")

    def _row(self, rank: int, now: float, last_line: str) -> Row:
        known = self._ranks[rank]
        self._read(known, now)
        return Row(
            rank=rank,
            state=known.state,
            detail=known.detail,
            seconds=(now if known.ended is None else known.ended) - known.began,
            paces=tuple(self._paces.of(rank)),
            usage=known.usage,
            last_line=last_line,
        )

    def _read(self, known: _Rank, now: float) -> None:
        """Read what a living process uses, now and then."""
        if known.pid is None or known.ended is not None or now - known.read < _BETWEEN_READINGS:
            return
        known.read = now
        if self._inherited is None:
            self._inherited = inherited_memory(known.pid)
        if known.gauge is None:
            known.gauge = Gauge(known.pid, known.began, inherited=self._inherited or 0)
        read = known.gauge.read(now)
        known.usage = known.usage if read is None else replace(read, gpu=known.gpu)

    def _set(self, rank: int, state: State, detail: str = "") -> None:
        if self._ranks[rank].state not in _OVER:
            self._ranks[rank].state = state
            self._ranks[rank].detail = detail

    def _close(self, rank: int, state: State, now: float, detail: str = "") -> None:
        if self._ranks[rank].state not in _OVER:
            self._set(rank, state, "" if state == "finished" else detail)
            self._ranks[rank].ended = now
