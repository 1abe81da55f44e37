"""What is to be run, found out before anything is touched."""

from __future__ import annotations

from dataclasses import dataclass

from nbshm.jobs import Body
from nbshm.options import Options
from nbshm.processes.fork_limits import as_fork_allows
from nbshm.runs.analysis import Analysis, analyse
from nbshm.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be run: the text, what it needs from the notebook, and how.

    `cell` is where it was started, as a person says it: `In [7]`.
    """

    body: Body
    analysis: Analysis
    options: Options
    cell: str

    @classmethod
    def allowed(cls, *, body: Body, analysis: Analysis, options: Options, cell: str) -> Task:
        """Make a task whose options are those that fork allows, where it is asked for.

        Raises
        ------
        OptionError
            The kernel can't be forked any more.

        """
        possible = as_fork_allows(options) if options.start_method == "fork" else options
        return cls(body=body, analysis=analysis, options=possible, cell=cell)


def prepare(body: Body, session: Session, options: Options) -> Task:
    """Find out what a cell needs, before anything is touched.

    Raises
    ------
    SyntaxError
        The cell does not compile.
    OptionError
        An option is wrong.

    """
    analysis = analyse(body, session.shell, options)
    session.get_ready()
    return Task.allowed(body=body, analysis=analysis, options=options, cell=f"In [{body.origin.cell}]")
