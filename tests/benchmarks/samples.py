"""Two ways to do the same, timed in turns: the ratio of their medians, and how far the times lie apart."""

from __future__ import annotations

import mmap
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What nbshm takes and what it is compared with, in the order in which they were taken, in turns.

    In seconds, which are shown in milliseconds, or in MiB.
    """

    workload: str
    peer: str
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    unit: Literal["ms", "MiB"] = "ms"

    @property
    def ratio(self) -> float:
        return statistics.median(self.ours) / statistics.median(self.theirs)

    @property
    def difference(self) -> float:
        return statistics.median(self.ours) - statistics.median(self.theirs)

    @property
    def ratios(self) -> tuple[float, ...]:
        return tuple(ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True))


def touch_free_memory(nbytes: int) -> None:
    """Have memory ready that processes may take for new pages: touch as much, and give it back.

    A virtual machine may return memory to its host that has been free for two seconds (free page reporting).
    To touch it then takes the host's time, seen as 1 s for a GiB in place of 0.05 s, whichever side it meets.
    """
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, nbytes, flags=private) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for start in range(0, nbytes, mmap.PAGESIZE):
            memory[start] = 1


def rest() -> None:
    """Pass the time in which workers are made ready for the next run, and what is over is cleared away."""
    time.sleep(0.3)


def compare(
    workload: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    peer: str,
    repetitions: int,
    before: Callable[[], object] = lambda: None,
) -> Comparison:
    """Time both in turns; `before` is called before each, and is not timed."""
    times = alternate(ours, theirs, repetitions=repetitions, before=before)
    return Comparison(workload=workload, peer=peer, ours=times[0], theirs=times[1])


def alternate(
    *ways: Callable[[], object], repetitions: int, before: Callable[[], object] = lambda: None
) -> list[tuple[float, ...]]:
    """Time all in turns, and in the other order every other time: what disturbs the machine disturbs all."""
    times: list[list[float]] = [[] for _ in ways]
    order = list(zip(ways, times, strict=True))
    for _ in range(repetitions):
        for way, found in order:
            before()
            found.append(seconds(way))
        order.reverse()
    return [tuple(found) for found in times]


def seconds(way: Callable[[], object]) -> float:
    begin = time.perf_counter()
    way()
    return time.perf_counter() - begin


def table(comparisons: Sequence[Comparison]) -> str:
    """Write medians with the range from the 10th to the 90th percentile in brackets."""
    head = ("workload", "nbshm", "compared with", "", "ratio", "difference")
    rows = [head, *(_row(comparison) for comparison in comparisons)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _row(comparison: Comparison) -> tuple[str, ...]:
    scale, unit = (1000 if comparison.unit == "ms" else 1), f" {comparison.unit}"
    return (
        comparison.workload,
        _with_range([scale * value for value in comparison.ours], ".0f", unit),
        comparison.peer,
        _with_range([scale * value for value in comparison.theirs], ".0f", unit),
        _with_range(comparison.ratios, ".2f", middle=comparison.ratio),
        f"{scale * comparison.difference:+.0f}{unit}",
    )


def _with_range(values: Sequence[float], form: str, unit: str = "", *, middle: float | None = None) -> str:
    low, high = _percentile(values, 0.1), _percentile(values, 0.9)
    middle = statistics.median(values) if middle is None else middle
    return f"{middle:{form}}{unit} ({low:{form}}-{high:{form}})"


def _percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
