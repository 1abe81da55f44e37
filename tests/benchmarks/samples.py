"""Two ways to do the same, timed in turns: the ratio of their medians, and how far the times lie apart."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Seconds of nbshm and of what it is compared with, in the order in which they were taken, in turns."""

    workload: str
    peer: str
    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ours) / statistics.median(self.theirs)

    @property
    def difference(self) -> float:
        return statistics.median(self.ours) - statistics.median(self.theirs)

    @property
    def ratios(self) -> tuple[float, ...]:
        return tuple(ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True))


def compare(
    workload: str, ours: Callable[[], object], theirs: Callable[[], object], *, peer: str, repetitions: int
) -> Comparison:
    """Time both in turns, and each first every other time: what disturbs the machine disturbs both."""
    times: dict[Callable[[], object], list[float]] = {ours: [], theirs: []}
    for repetition in range(repetitions):
        for way in (ours, theirs) if repetition % 2 == 0 else (theirs, ours):
            times[way].append(seconds(way))
    return Comparison(workload=workload, peer=peer, ours=tuple(times[ours]), theirs=tuple(times[theirs]))


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
    return (
        comparison.workload,
        _with_range([1000 * value for value in comparison.ours], ".0f", " ms"),
        comparison.peer,
        _with_range([1000 * value for value in comparison.theirs], ".0f", " ms"),
        _with_range(comparison.ratios, ".2f", middle=comparison.ratio),
        f"{1000 * comparison.difference:+.0f} ms",
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
