"""One parallel cell, from its text to its results: the houses called in order.

text ─analyse→ needs ─pack, place→ departure ─launch→ workers
                  results ◀─ outcomes ◀─ events ◀────────┘
                                            └─ view → the page
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

from nbshm import notes
from nbshm.analysis import analyse
from nbshm.departures import Departure, departing
from nbshm.errors import NothingBound, ParallelError, RunInterrupted, RunTimedOut
from nbshm.events import Note, Output, Result
from nbshm.forking import as_fork_allows
from nbshm.jobs import Body, Outcome
from nbshm.living import LivingRun
from nbshm.options import Options
from nbshm.processes.kernel_signals import closing_undisturbed, interrupts_noted
from nbshm.processes.supervisor import Supervisor
from nbshm.results import Results
from nbshm.runs import Run
from nbshm.session import Session
from nbshm.views.choice import choose_view
from nbshm.views.transcript import Transcript
from nbshm.views.view import View
from nbshm.words import ranks_in_words


def run(body: Body, session: Session, options: Options) -> Results | None:
    """Run one parallel cell and return its results by rank; None if no rank has one.

    Raises
    ------
    SyntaxError
        The cell does not compile; nothing was started.
    OptionError, CannotSend, NoRoom
        An option is wrong, or something that the cell needs can't travel; nothing was started.
    RankRaised, RankDied, RunTimedOut, RunInterrupted
        The run did not come to its end; all its processes are gone.
    NameError
        No rank has bound a name of `out=`.

    """
    analysis = analyse(body, session.shell, options)
    session.get_ready()
    options = as_fork_allows(options) if options.start_method == "fork" else options
    view = choose_view(session.shell)
    view.begin(options.nprocs)
    try:
        with (
            session.runs.one(grace=options.grace) as living,
            departing(body, analysis.needs, session, options) as departure,
        ):
            namespace = session.notebook.namespace
            for line in notes.before_start(options, departure.names, analysis.written, namespace):
                view.show(Note(text=line))
            for line in notes.about(departure.edited, departure.private):
                view.show(Note(text=line))
            arrivals = _supervise(departure, session, options, view, living)
        session.last = arrivals.run
        values = _bound(arrivals, options, view) if arrivals.run.ending == "finished" else {}
        view.finish(failures=arrivals.run.failures, stopped=arrivals.run.stopped)
    finally:
        view.finish()
    _raise_failure(arrivals, options)
    session.notebook.namespace.update(values)
    return None if all(value is None for value in arrivals.run.results) else Results(arrivals.run.results)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrivals:
    """What has come back: the run as people see it, what each rank gave, and what could not be unpickled."""

    run: Run
    outcomes: dict[int, Outcome]
    broken: dict[int, Exception]


def _supervise(
    departure: Departure, session: Session, options: Options, view: View, living: LivingRun
) -> _Arrivals:
    """Start the workers, show what they say, and collect what they give back."""
    transcript, outcomes, broken = Transcript(), {}, {}
    with closing_undisturbed() as stack, interrupts_noted(living.interrupt):
        workers = stack.enter_context(session.launcher.launch(options.nprocs, options.start_method))
        supervisor = Supervisor(
            workers, grace=options.grace, timeout=options.timeout, token=departure.job.token
        )
        stack.callback(supervisor.close)
        living.is_supervised_by(supervisor)
        workers.post(pickle.dumps(departure.job, protocol=5), departure.fds)
        for event in supervisor:
            if isinstance(event, Output):
                transcript.write(event)
            elif isinstance(event, Result):
                try:
                    outcomes[event.rank] = _unpack(event, departure, supervisor.take_descriptors(event.rank))
                except Exception as error:  # noqa: BLE001  # a foreign __setstate__; told when the run has ended
                    broken[event.rank] = error
            view.show(event)
    verdict = supervisor.verdict
    return _Arrivals(
        run=Run(
            ending=verdict.ending,
            results=[outcomes[rank].value if rank in outcomes else None for rank in range(options.nprocs)],
            failures=tuple(
                notes.with_hint(failure, departure.names, session.notebook.namespace)
                for failure in verdict.failures
            ),
            stopped=verdict.stopped,
            seconds=verdict.seconds,
            read_output=transcript.read,
        ),
        outcomes=outcomes,
        broken=broken,
    )


def _unpack(event: Result, departure: Departure, fds: list[int]) -> Outcome:
    """Make a rank's values the notebook's: what was its own is its own again."""
    with departure.placement.loading(event.parcel, fds):
        outcome: Outcome = pickle.loads(event.parcel.pickled)
        return outcome


def _bound(arrivals: _Arrivals, options: Options, view: View) -> dict[str, list[Any]]:
    """Return the lists by rank for the names of `out=`."""
    lists = {}
    for name in options.out:
        ranks = [rank for rank, outcome in arrivals.outcomes.items() if name in outcome.out]
        if not ranks:
            raise NothingBound(name)
        missing = [rank for rank in range(options.nprocs) if rank not in ranks]
        if missing:
            view.show(
                Note(text=f"out={name}: {ranks_in_words(missing)} did not bind it; None stands for it.")
            )
        lists[name] = [
            arrivals.outcomes[rank].out.get(name) if rank in ranks else None for rank in range(options.nprocs)
        ]
    return lists


def _raise_failure(arrivals: _Arrivals, options: Options) -> None:
    """Raise what became of a run that did not come to its end."""
    run = arrivals.run
    match run.ending:
        case "failed":
            from nbshm.failures import error_for  # noqa: PLC0415  # imports torch

            raise error_for(run.failures, stopped=run.stopped, results=run.results, output=run.output)
        case "timed out":
            raise RunTimedOut(
                options.timeout or 0.0, stopped=run.stopped, results=run.results, output=run.output
            )
        case "interrupted" | "stopped":
            raise RunInterrupted(run.stopped)
    for rank, error in arrivals.broken.items():
        raise ParallelError(
            f"what rank {rank} gave back can't be unpickled here: {type(error).__name__}: {error}"
        ) from error
