"""A run under way: workers that have what they need, and what they say, shown and collected.

The foreground (`runner`) and the background (`background`) both go this way; they differ in who supervises,
and in what becomes of the end.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from nbshm.errors import ParallelError
from nbshm.events import CalledCollective, Event, Lingering, Note, Output, Result, Stalled
from nbshm.failures.reports import Died, RankFailure, with_frames
from nbshm.failures.stacks import Reader
from nbshm.garbage import collection_put_off
from nbshm.jobs import Outcome
from nbshm.notebook.namespace import Notebook
from nbshm.processes.kernel_signals import closing_undisturbed, interrupts_noted
from nbshm.processes.supervisor import Supervisor
from nbshm.processes.workers import Workers
from nbshm.results import Results
from nbshm.runs import notes
from nbshm.runs.arrivals import Arrivals
from nbshm.runs.departures import Departure, departing
from nbshm.runs.foreword import foreword
from nbshm.runs.hints import Hints
from nbshm.runs.last import Run, check_rank
from nbshm.runs.living import LivingRun
from nbshm.runs.shared_collectives import SharedCollectives
from nbshm.runs.tasks import Task
from nbshm.runs.times import Times
from nbshm.session import Session
from nbshm.views.transcript import Transcript
from nbshm.views.view import View
from nbshm.wire.board import Board
from nbshm.wire.messages import Arrived
from nbshm.words import seconds_in_words


@contextmanager
def under_way(task: Task, session: Session, view: View, living: LivingRun) -> Iterator[RunUnderWay]:
    """Start a task's workers; on leaving, they are gone, and the memory is the notebook's again.

    It may be left in another thread than it was entered in.

    Raises
    ------
    OptionError, CannotSend, NoRoom
        Something that is needed can't travel, or there is not enough of it; nothing was started.

    """
    options, began = task.options, time.monotonic()
    with closing_undisturbed() as stack:
        departure = stack.enter_context(departing(task.body, task.analysis.needs, session, options))
        living.mirrored = departure.placement.mirrored
        for line in foreword(task, departure, session.notebook.namespace):
            view.show(Note(text=line))
        with interrupts_noted(living.interrupt):
            workers = stack.enter_context(
                session.launcher.launch(
                    options.nprocs, options.start_method, standby=options.standby, preload=departure.preload
                )
            )
            supervisor = Supervisor(
                workers, grace=options.grace, timeout=options.timeout, token=departure.job.token
            )
            stack.callback(supervisor.close)
            living.be_supervised_by(supervisor)
            workers.post(pickle.dumps(departure.job, protocol=5), departure.fds)
        yield RunUnderWay(
            task=task,
            departure=departure,
            workers=workers,
            supervisor=supervisor,
            view=view,
            notebook=session.notebook,
            began=began,
        )


def conclude(arrivals: Arrivals, task: Task, session: Session, view: View) -> Results | None:
    """Give the notebook what has come back; return the results by rank, None if no rank has one.

    Raises
    ------
    RankRaised, RankDied, RunTimedOut, RunInterrupted
        The run did not come to its end.
    NameError
        No rank has bound a name of `out=`.

    """
    session.last = arrivals.run
    lists = arrivals.bound(task.options, lambda line: view.show(Note(text=line)))
    view.finish(failures=arrivals.run.failures, stopped=arrivals.run.stopped)
    try:
        arrivals.raise_failure(task.options)
    except ParallelError as error:
        error.is_shown = view.shows_failures(error.failures)
        raise
    session.notebook.namespace.update(lists)
    session.notebook.bound_in_ranks.update(dict.fromkeys(task.analysis.binds, task.cell))
    return arrivals.results


class RunUnderWay:
    """The ranks at work: supervise them once, in any thread; what they have given so far can be looked at."""

    def __init__(
        self,
        *,
        task: Task,
        departure: Departure,
        workers: Workers,
        supervisor: Supervisor,
        view: View,
        notebook: Notebook,
        began: float,
    ) -> None:
        self._nprocs = task.options.nprocs
        self._in_background = task.options.background is not None
        self.workers = workers
        self._departure = departure
        self._supervisor = supervisor
        self._view = view
        self._hints = Hints(notebook=notebook, sent=departure.names, texts=task.analysis.texts)
        self._reader = Reader(cells=notebook.cells, body=task.body)
        self._transcript = Transcript()
        self._outcomes: dict[int, Outcome] = {}
        self._broken: dict[int, Exception] = {}
        self._began = began
        self._times = Times(self._nprocs, began)
        self._collectives = SharedCollectives()

    def supervise(self) -> Arrivals:
        """Show what the ranks say until the last has ended; return what has come back."""
        for event in self._supervisor:
            self._take(event)
            self._times.see(event, time.monotonic())
            self._view.show(event)
            for note in self._comments(event):
                self._view.show(note)
        return Arrivals(run=self._run(), outcomes=self._outcomes, broken=self._broken)

    @property
    def results(self) -> list[Any]:
        """What ranks have given so far, None for the others."""
        given = dict(self._outcomes)
        return [given[rank].value if rank in given else None for rank in range(self._nprocs)]

    def output(self, rank: int) -> str:
        """Return everything that a rank has written so far.

        Raises
        ------
        IndexError
            There is no such rank.

        """
        check_rank(rank, self._nprocs)
        return self._transcript.read(rank)

    def in_words(self) -> str:
        """Say how far it is: `for 12 s, 1 of 4 ranks has finished`."""
        finished = len(self._outcomes)
        has = "has" if finished == 1 else "have"
        return (
            f"for {seconds_in_words(time.monotonic() - self._began)}, "
            f"{finished} of {self._nprocs} ranks {has} finished"
        )

    def _take(self, event: Event) -> None:
        if isinstance(event, Output):
            self._transcript.write(event)
        elif isinstance(event, Result):
            try:
                self._outcomes[event.rank] = self._unpacked(event)
            except Exception as error:  # noqa: BLE001  # a foreign __setstate__; told when the run has ended
                self._broken[event.rank] = error
            if event.parcel.is_lent:
                self._supervisor.tell(event.rank, Arrived())

    def _comments(self, event: Event) -> Iterator[Note]:
        """Say what an event means that only the supervisor understands."""
        match event:
            case Stalled(dumps=dumps, parents=parents):
                feeders = bool(parents) or self._in_background
                text = notes.about_stillness(self._reader.stacks(dumps), may_be_fed=feeders)
                yield from [Note(text=text)] if text else []
            case Lingering(rank=rank, dump=dump):
                reason = notes.about_lingering(dump, self._reader)
                yield from [Note(rank=rank, text=reason)] if reason else []
            case CalledCollective():
                found = self._collectives.see(event)
                yield from [Note(text=found)] if found else []
            case _:
                pass

    def _unpacked(self, event: Result) -> Outcome:
        """Make a rank's values the notebook's: what was its own is its own again."""
        fds = self._supervisor.take_descriptors(event.rank)
        with self._departure.placement.loading(event.parcel, fds), collection_put_off():
            outcome: Outcome = pickle.loads(event.parcel.pickled)
            return outcome

    def _with_items(self, failure: RankFailure) -> RankFailure:
        """Add to a death which items of a shared loop the rank had."""
        if not isinstance(failure, Died):
            return failure
        held = Board(self._departure.board, self._nprocs).held_by(failure.rank)
        return replace(failure, items=range(held.start, held.stop))

    def _run(self) -> Run:
        verdict = self._supervisor.verdict
        return Run(
            ending=verdict.ending,
            results=self.results,
            failures=tuple(
                self._hints.added_to(with_frames(self._with_items(one), self._reader))
                for one in verdict.failures
            ),
            stopped=verdict.stopped,
            seconds=verdict.seconds,
            times=self._times.by_rank(),
            exitcodes=verdict.exitcodes,
            read_output=self._transcript.read,
            stacks=self._reader.stacks(self._supervisor.last_look),
        )
