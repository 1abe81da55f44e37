"""The last run, as data: `nbshm.last`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nbshm.failures.reports import Ending, RankFailure, Stopped
from nbshm.failures.stacks import RankStack
from nbshm.runs.time_report import TimeReport
from nbshm.runs.times import RankTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a parallel cell, also of one that failed.

    `results` are the values of the last expression by rank, None for a rank that did not get there.
    `seconds` are the lifetimes of the ranks' processes, `exitcodes` as in multiprocessing, `times` says how
    the time was spent. `output(rank)` is all that a rank wrote, kept on disk as long as the run object lives.
    `stacks` are where ranks were when their time was over.
    """

    ending: Ending
    results: Sequence[Any]
    failures: tuple[RankFailure, ...]
    stopped: tuple[Stopped, ...]
    seconds: tuple[float | None, ...]
    times: tuple[RankTimes, ...]
    read_output: Callable[[int], str]
    exitcodes: tuple[int | None, ...] = ()
    stacks: tuple[RankStack, ...] = ()

    def __repr__(self) -> str:
        ranks = "1 rank" if len(self.seconds) == 1 else f"{len(self.seconds)} ranks"
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<Run of {ranks}: {self.ending}{failed}>"

    def output(self, rank: int) -> str:
        """Return everything that a rank wrote to its stdout and stderr, in the order of arrival."""
        check_rank(rank, len(self.seconds))
        return self.read_output(rank)

    def report(self) -> TimeReport:
        """Return how the ranks spent their time (starting, working, waiting), as a table and a picture."""
        return TimeReport(self.times)


def check_rank(rank: int, nprocs: int) -> None:
    """Raise IndexError for a rank that a run of that many does not have."""
    if not 0 <= rank < nprocs:
        raise IndexError(f"there is no rank {rank}: the run has ranks 0 to {nprocs - 1}.")
