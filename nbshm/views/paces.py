"""How far the ranks have come in their loops, how fast, and how long it will take yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nbshm.events import Progress

_CLAIMS_KEPT = 8  # ranks are rarely farther apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """One loop at one moment: of a rank, or of all ranks together.

    `done` and `total` (None where nobody knows it) count items, `rate` is items a second, None while nothing
    can be said about it. A `shared` loop of a rank has its own `done` of everybody's `total`.
    """

    label: str
    done: float
    total: float | None
    rate: float | None
    shared: int | None = None
    detail: str = ""
    ended: bool = False

    @property
    def fraction(self) -> float | None:
        """How much of it is done, from 0 to 1; None where that can't be said."""
        if self.total is None:
            return None
        return min(1.0, self.done / self.total) if self.total > 0 else 1.0

    @property
    def seconds_left(self) -> float | None:
        """How long it will take yet if it goes on like this."""
        if self.total is None or self.ended or not self.rate:
            return None
        return max(0.0, self.total - self.done) / self.rate


@dataclass(slots=True, kw_only=True)
class _Loop:
    """A loop of a rank: the last that was said of it, and when."""

    progress: Progress
    began: float
    first: float
    told: float

    def pace(self) -> Pace:
        said, seconds = self.progress, self.told - self.began
        return Pace(
            label=said.label,
            done=said.done,
            total=said.total,
            rate=(said.done - self.first) / seconds if seconds > 0 and said.done > self.first else None,
            shared=said.shared,
            detail=said.detail,
            ended=said.ended,
        )


class Paces:
    """Follows the loops of all ranks."""

    def __init__(self, nprocs: int) -> None:
        self._loops: list[dict[int, _Loop]] = [{} for _ in range(nprocs)]
        self._claims: dict[int, dict[int, _Loop]] = {}

    def add(self, said: Progress, now: float) -> None:
        """Take in how far a rank has come."""
        loops = self._loops[said.rank]
        loop = loops.get(said.loop)
        if loop is None:
            # Of the loops that have ended the last outermost one is shown until there is another.
            for number in [number for number, other in loops.items() if other.progress.ended]:
                del loops[number]
            loop = loops[said.loop] = _Loop(progress=said, began=now, first=said.done, told=now)
        loop.progress, loop.told = said, now
        if said.ended and said.loop != min(loops):
            del loops[said.loop]
        if said.shared is not None:
            self._claims.setdefault(said.shared, {})[said.rank] = loop
            for number in sorted(self._claims)[:-_CLAIMS_KEPT]:
                del self._claims[number]

    def of(self, rank: int) -> list[Pace]:
        """Return the loops that a rank is in, the outermost first."""
        return [loop.pace() for loop in self._loops[rank].values()]

    def whole(self, finished: Iterable[int] = ()) -> Pace | None:
        """Sum up the outermost loops of all ranks; those that are `finished` have done theirs."""
        outer = {rank: paces[0] for rank in range(len(self._loops)) if (paces := self.of(rank))}
        claims = {pace.shared for pace in outer.values() if pace.shared is not None}
        if claims:
            return self.claim(min(claims & self._claims.keys(), default=max(self._claims)))
        return _together(outer, frozenset(finished))

    def claim(self, number: int) -> Pace:
        """Sum up what all ranks have done of a claim."""
        return _sum([loop.pace() for loop in self._claims[number].values()])


def _sum(parts: Sequence[Pace]) -> Pace:
    rates = [part.rate for part in parts if part.rate is not None and not part.ended]
    totals = [part.total for part in parts if part.total is not None]
    return Pace(
        label=next((part.label for part in parts if part.label), ""),
        done=sum(part.done for part in parts),
        total=totals[0] if totals else None,
        rate=sum(rates) if rates else None,
        shared=parts[0].shared,
        ended=all(part.ended for part in parts),
    )


def _together(outer: dict[int, Pace], finished: frozenset[int]) -> Pace | None:
    """Sum up loops that the ranks run each for itself: it is the slowest rank that they wait for."""
    known = {rank: pace for rank, pace in outer.items() if pace.total is not None}
    if not known:
        return None
    total = sum(pace.total or 0 for pace in known.values())
    done = sum((pace.total or 0) if rank in finished else pace.done for rank, pace in known.items())
    left = [pace.seconds_left for rank, pace in known.items() if rank not in finished and not pace.ended]
    longest = max((seconds for seconds in left if seconds is not None), default=None)
    rate = (total - done) / longest if longest else None
    return Pace(label="", done=done, total=total, rate=rate, ended=not left)
