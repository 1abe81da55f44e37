"""One parallel cell, from its text to its results: the houses called in order.

text ─prepare→ task ─departing: pack, place→ job, memory ─launch→ workers
                              results ◀─conclude─ arrivals ◀─ events ◀┘
                                                               └─ view → the page
"""

from __future__ import annotations

from contextlib import ExitStack

from nbshm.jobs import Body
from nbshm.options import Options
from nbshm.processes.kernel_signals import interrupts_noted
from nbshm.results import Results
from nbshm.runs.living import LivingRun
from nbshm.runs.tasks import Task, prepare
from nbshm.runs.under_way import conclude, under_way
from nbshm.session import Session
from nbshm.views.choice import choose_view


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
    return carry_out(prepare(body, session, options), session)


def carry_out(task: Task, session: Session) -> Results | None:
    """Run a task and return its results by rank, as `run` does for a cell."""
    living = LivingRun(name=task.cell, grace=task.options.grace, body=task.body)
    view = choose_view(session.shell)
    view.begin(task.options.nprocs, stop=living.stop)
    with ExitStack() as stack:
        stack.callback(view.finish)
        with (
            session.runs.turn,
            session.runs.counting(living),
            under_way(task, session, view, living) as current,
            interrupts_noted(living.interrupt),
        ):
            arrivals = current.supervise()
        return conclude(arrivals, task, session, view)
