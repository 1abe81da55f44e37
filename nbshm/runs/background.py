"""Runs in the background: `%%parallel background=job` returns at once and binds `job`.

Everything is packed, moved and started in the cell, which fails there if something can't travel. Then a
thread supervises, whose outputs go to the cell that started the run, however many cells come after it.
"""

from __future__ import annotations

import queue
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from nbshm.errors import CallInterrupted, RunInterrupted
from nbshm.failures.stacks import Stacks
from nbshm.jobs import Body
from nbshm.options import OptionError, Options
from nbshm.processes.kernel_signals import interrupts_noted
from nbshm.processes.workers import Workers
from nbshm.results import Results
from nbshm.runs.last import Run
from nbshm.runs.living import LivingRun
from nbshm.runs.tasks import Task, prepare
from nbshm.runs.under_way import RunUnderWay, conclude, under_way
from nbshm.session import Session
from nbshm.told_errors import told_in_words
from nbshm.views.choice import choose_view, showing_in_its_cell
from nbshm.views.outputs import show_failure
from nbshm.views.view import View

_WAIT_INTERRUPTED = "the wait was interrupted. The run goes on; stop() ends it."
_STOP_INTERRUPTED = "the wait was interrupted. The ranks are being stopped; stop() again ends them at once."


@dataclass(slots=True, kw_only=True)
class Standing:
    """What a run's thread shares with those who ask; `over` is set when nothing changes any more."""

    name: str
    cell: str
    living: LivingRun
    cells: Mapping[str, int]
    current: RunUnderWay | None
    run: Run | None = None
    failure: BaseException | None = None
    looked_at: bool = False
    over: threading.Event = field(default_factory=threading.Event)


class BackgroundRun:
    """A run that goes on while the notebook is used for other things.

    Tensors and arrays that only names hold are shared, so what ranks write into them can be watched and
    plotted meanwhile; what more than names hold (a list, a figure) comes back when the run ends.
    """

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        weakref.finalize(self, _warn_if_nobody_looked, standing)

    @property
    def status(self) -> str:
        """`running`, or how it has ended: `finished`, `failed`, `timed out`, `stopped`."""
        self._look()
        if not self._standing.over.is_set():
            return "running"
        ending = self._standing.run.ending if self._standing.run else "failed"
        return "failed" if ending == "finished" and self._standing.failure else ending

    @property
    def results(self) -> Results:
        """The values of the last expression by rank, None for a rank that has not given one (yet)."""
        self._look()
        current, run = self._standing.current, self._standing.run
        return Results(current.results if current else run.results if run else [])

    def output(self, rank: int) -> str:
        """Return everything that a rank has written so far to its stdout and stderr, in the order of arrival.

        Raises
        ------
        IndexError
            There is no such rank.

        """
        current, run = self._standing.current, self._standing.run
        if current is not None:
            return current.output(rank)
        return run.output(rank) if run else ""

    def stacks(self) -> Stacks:
        """Ask the living ranks where they are, which does not disturb them; the repr tells it.

        Also a rank that sits in compiled code answers. What a rank waits for is named.
        """
        return self._standing.living.stacks(self._standing.cells)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended, at most `timeout` seconds; return whether it has.

        An interrupt ends the wait, not the run.

        Raises
        ------
        RankRaised, RankDied, RunTimedOut, RunInterrupted, NameError
            The run has failed or was stopped: what the cell would have raised, each time this is asked.
        ValueError
            `timeout` is negative.

        """
        if timeout is not None and timeout < 0:
            raise ValueError(f"wait({timeout}): give seconds from 0 on, or nothing to wait for the end.")
        with told_in_words(CallInterrupted(_WAIT_INTERRUPTED)):
            has_ended = self._standing.over.wait(timeout)
        if not has_ended:
            return False
        self._look()
        if self._standing.failure is not None:
            raise self._standing.failure.with_traceback(None)
        return True

    def stop(self) -> None:
        """End the run as an interrupt ends a cell, so that `finally` blocks run, and wait until it has ended.

        Called again meanwhile (from another thread, or after an interrupt), it ends the ranks at once.
        """
        with told_in_words(CallInterrupted(_STOP_INTERRUPTED)):
            self._standing.living.stop()
            self._standing.over.wait()

    def __repr__(self) -> str:
        standing = self._standing
        details = f"{type(self).__name__} {standing.name!r} ({standing.cell})"
        if standing.current is not None and not standing.over.is_set():
            return f"<{details}: running {standing.current.in_words()}>"
        return f"<{details}: {self.status}>"

    def _look(self) -> None:
        """Note that somebody who asks after the end knows of a failure."""
        if self._standing.over.is_set():
            self._standing.looked_at = True


def start(body: Body, session: Session, options: Options) -> None:
    """Start a run, bind its name to a `BackgroundRun`, and return.

    Raises
    ------
    SyntaxError, OptionError, CannotSend, NoRoom
        As `runner.run`, or the name is that of a run that has not ended; nothing was started, and the name is
        what it was.

    """
    name = options.background or ""
    _check_name(name, session.notebook.namespace.get(name))
    task = prepare(body, session, options)
    session.notebook.namespace[name] = BackgroundRun(launch(task, session, name=name))


def _check_name(name: str, present: object) -> None:
    """Refuse to let go of a run that nobody could stop any more: a cell is easily run twice."""
    if isinstance(present, BackgroundRun) and not present._standing.over.is_set():  # noqa: SLF001  # our own
        raise OptionError(
            f"background={name}: the run of this name has not ended. "
            f"Stop it ({name}.stop()), wait for it ({name}.wait()), or write another name."
        )


def launch(
    task: Task, session: Session, *, name: str, note: Callable[[Workers], None] | None = None
) -> Standing:
    """Start a task's workers, and a thread that supervises them; `note` is shown the workers before.

    An interrupt meanwhile is the run's.
    """
    living = LivingRun(name=f"{name} ({task.cell})", grace=task.options.grace, body=task.body)
    view = choose_view(session.shell)
    view.begin(task.options.nprocs, stop=living.stop)
    with interrupts_noted(living.interrupt), ExitStack() as whole, ExitStack() as journey:
        whole.callback(view.finish)
        with session.runs.turn:
            whole.enter_context(session.runs.counting(living))
            current = journey.enter_context(under_way(task, session, view, living))
        if note is not None:
            note(current.workers)
        standing = Standing(
            name=name, cell=task.cell, living=living, cells=session.notebook.cells, current=current
        )
        attendance = _Attendance(task, session, view, standing)
        work = showing_in_its_cell(session.shell, attendance)
        thread = threading.Thread(target=work, name=f"nbshm-{name}", daemon=True)
        living.be_attended_by(thread)
        thread.start()
        attendance.take_over(whole.pop_all(), journey.pop_all())
    return standing


class _Attendance:
    """What the thread of a run does, from when it is given what must be closed in the end."""

    def __init__(self, task: Task, session: Session, view: View, standing: Standing) -> None:
        self._task = task
        self._session = session
        self._view = view
        self._standing = standing
        self._stacks: queue.SimpleQueue[tuple[ExitStack, ExitStack]] = queue.SimpleQueue()

    def take_over(self, whole: ExitStack, journey: ExitStack) -> None:
        """Close these from now on: the journey when the last rank has ended, the whole after all is said."""
        self._stacks.put((whole, journey))

    def __call__(self) -> None:
        whole, journey = self._stacks.get()
        with whole:
            try:
                self._attend(journey)
            except RunInterrupted as error:  # asked for, and told by the view
                self._standing.failure = error.with_traceback(None)
                self._standing.looked_at = True
            except BaseException as error:  # noqa: BLE001  # raised by `wait`, and shown
                self._standing.failure = error.with_traceback(None)
                show_failure(error)
            finally:
                self._standing.current = None
                self._standing.over.set()

    def _attend(self, journey: ExitStack) -> None:
        current = self._standing.current
        assert current is not None  # noqa: S101  # it is until this has ended
        with journey:
            arrivals = current.supervise()
        self._standing.run = arrivals.run
        conclude(arrivals, self._task, self._session, self._view)


def _warn_if_nobody_looked(standing: Standing) -> None:
    if standing.failure is None or standing.looked_at:
        return
    first = str(standing.failure).partition("\n")[0]
    message = (
        f"the background run {standing.name!r} failed, and nobody has asked how it ended: {first} "
        f"{standing.name}.wait() would have raised it."
    )
    warnings.warn_explicit(message, RuntimeWarning, filename=standing.cell, lineno=1)
