"""What has come back from a run: its story as data, what each rank gave, and how the cell ends therefore."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbshm.errors import NoRoom, NothingBound, ParallelError, RunInterrupted, RunTimedOut
from nbshm.jobs import Outcome
from nbshm.options import Options
from nbshm.results import Results
from nbshm.runs.last import Run
from nbshm.words import ranks_in_words

_REMEDY = (
    "Give back what needs nothing of the rank's process (of a model in DistributedDataParallel its .module), "
    "or end the cell in ';'."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """The run as people see it, what each rank gave, and what could not be unpickled here."""

    run: Run
    outcomes: dict[int, Outcome]
    broken: dict[int, Exception]

    @property
    def results(self) -> Results | None:
        """The values of the last expression by rank; None if no rank has one."""
        return None if all(value is None for value in self.run.results) else Results(self.run.results)

    def bound(self, options: Options, tell: Callable[[str], None]) -> dict[str, list[Any]]:
        """Return the lists by rank for the names of `out=`; nothing of a run that did not come home whole.

        Raises
        ------
        NothingBound
            No rank has bound one of the names.

        """
        if self.run.ending != "finished" or self.broken:
            return {}
        return {name: self._by_rank(name, options.nprocs, tell) for name in options.out}

    def raise_failure(self, options: Options) -> None:
        """Raise what became of a run that did not come to its end."""
        run = self.run
        match run.ending:
            case "failed":
                from nbshm.failures.rank_errors import error_for  # noqa: PLC0415  # imports torch

                raise error_for(run.failures, stopped=run.stopped, results=run.results, output=run.output)
            case "timed out":
                raise RunTimedOut(
                    options.timeout or 0.0,
                    stopped=run.stopped,
                    stacks=run.stacks,
                    results=run.results,
                    output=run.output,
                )
            case "interrupted" | "stopped":
                raise RunInterrupted(run.stopped, by=run.ending)
        for rank, error in self.broken.items():
            if isinstance(error, NoRoom):
                raise error
            raise ParallelError(
                f"what rank {rank} gave back can't be unpickled here: {type(error).__name__}: "
                f"{str(error).rstrip('.')}. {_REMEDY}"
            ) from error

    def _by_rank(self, name: str, nprocs: int, tell: Callable[[str], None]) -> list[Any]:
        values = {rank: given.out[name] for rank, given in self.outcomes.items() if name in given.out}
        if not values:
            raise NothingBound(name)
        missing = [rank for rank in range(nprocs) if rank not in values]
        if missing:
            tell(f"out={name}: {ranks_in_words(missing)} did not bind it; None stands for it.")
        return [values.get(rank) for rank in range(nprocs)]
