"""How the ranks of a run spent their time, gathered from events: what people look at to balance a load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from nbshm.events import Ended, Event, Exited, Failed, Interrupted, Result, Resumed, Started, Waiting

Phase: TypeAlias = Literal["starting", "working", "waiting", "over"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTimes:
    """Seconds of one rank from the run's start to its end.

    `starting` until its body began, `working` and `waiting` (at a barrier, for a lock, a queue) in its body,
    `over` from the end of its body to the end of the last rank's.
    """

    starting: float
    working: float
    waiting: float
    over: float

    @property
    def whole(self) -> float:
        """All of it, which is the same for all ranks of a run."""
        return self.starting + self.working + self.waiting + self.over


class _Clock:
    """The phase that a rank is in, since when, and how long it was in each."""

    def __init__(self, now: float) -> None:
        self.phase: Phase = "starting"
        self.since = now
        self.spent: dict[str, float] = dict.fromkeys(get_args(Phase), 0.0)

    def turn_to(self, phase: Phase, now: float) -> None:
        if self.phase != "over":
            self.spent[self.phase] += now - self.since
            self.phase, self.since = phase, now


class Times:
    """Follows the ranks of a run that began at `now`, by a monotonic clock."""

    def __init__(self, nprocs: int, now: float) -> None:
        self._clocks = [_Clock(now) for _ in range(nprocs)]

    def see(self, event: Event, now: float) -> None:
        """Take in an event."""
        match event:
            case Started(rank=rank) | Resumed(rank=rank):
                self._clocks[rank].turn_to("working", now)
            case Waiting(rank=rank):
                self._clocks[rank].turn_to("waiting", now)
            case (
                Result(rank=rank)
                | Failed(rank=rank)
                | Exited(rank=rank)
                | Interrupted(rank=rank)
                | Ended(rank=rank)
            ):
                self._clocks[rank].turn_to("over", now)

    def by_rank(self) -> tuple[RankTimes, ...]:
        """Return how each rank spent its time; the run ended when its last rank's body did."""
        end = max((clock.since for clock in self._clocks if clock.phase == "over"), default=0.0)
        return tuple(_times(clock, end) for clock in self._clocks)


def _times(clock: _Clock, end: float) -> RankTimes:
    spent = clock.spent | {clock.phase: clock.spent[clock.phase] + max(0.0, end - clock.since)}
    return RankTimes(**spent)


def balance(times: Sequence[RankTimes]) -> float:
    """Return the mean of the ranks' work over the longest's: 1 where all had the same to do."""
    longest = max((one.working for one in times), default=0.0)
    return sum(one.working for one in times) / len(times) / longest if longest > 0 else 1.0
