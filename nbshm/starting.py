"""`nbshm.spawn` and `nbshm.start_processes`: torch's functions of these names, as runs of a function.

They mean what torch.multiprocessing's mean. Added are what a run of a cell has: the live view, output by
rank, values by rank (`nbshm.last`, `context.results`), and functions that are defined in the notebook.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from nbshm.errors import CannotSend, RunInterrupted
from nbshm.extension import current_session
from nbshm.jobs import Body, Origin
from nbshm.notebook.cells import running_cell
from nbshm.options import Options, parse
from nbshm.own_code import OWN_DIRECTORY
from nbshm.packing import Needs
from nbshm.processes.workers import Workers
from nbshm.runs import background, runner
from nbshm.runs.analysis import Analysis
from nbshm.runs.background import BackgroundRun, Standing
from nbshm.runs.tasks import Task
from nbshm.session import Session
from nbshm.told_errors import told_in_words
from nbshm.wire.readiness import wait_readable

# Names that no notebook has: the function may read a global called `fn` or `args`.
_FUNCTION, _ARGUMENTS = "_nbshm_function", "_nbshm_arguments"
_SOURCE = f"{_FUNCTION}(rank, *{_ARGUMENTS})\n"


def spawn(  # noqa: PLR0917  # torch's signature
    fn: Callable[..., Any],
    args: Iterable[Any] = (),
    nprocs: int = 1,
    join: bool = True,  # noqa: FBT001, FBT002  # torch's signature
    daemon: bool = False,  # noqa: FBT001, FBT002  # likewise
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(rank, *args)` in `nprocs` new interpreters, as `torch.multiprocessing.spawn` does.

    Returns None when all have ended, or at once a context to `join` if `join` is False. Daemons may not have
    child processes. CPU tensors in `args` are shared, and written in place by all.

    Raises
    ------
    RankRaised, RankDied
        A rank has failed: torch's ProcessRaisedException and ProcessExitedException. The others were ended.
    CannotSend
        The function or an argument can't travel; nothing was started.

    """
    if start_method != "spawn":
        message = (
            f"spawn always uses start_method=spawn (got: {start_method}). "
            "To use another one call nbshm.start_processes(...)."
        )
        warnings.warn(message, FutureWarning, stacklevel=2)
    return start_processes(fn, args, nprocs, join, daemon)


def start_processes(  # noqa: PLR0917  # torch's signature
    fn: Callable[..., Any],
    args: Iterable[Any] = (),
    nprocs: int = 1,
    join: bool = True,  # noqa: FBT001, FBT002  # torch's signature
    daemon: bool = False,  # noqa: FBT001, FBT002  # likewise
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Do as `spawn` does, with processes of any start method: forkserver, spawn or fork."""
    if not callable(fn):
        raise TypeError(f"fn must be a function, not {type(fn).__name__}: fn(rank, *args) is called.")
    session = _session()
    options = parse(f"nprocs={nprocs} start_method={start_method}", Options())
    values = {_FUNCTION: fn, _ARGUMENTS: tuple(args)}
    with told_in_words(RunInterrupted()), _at_hand(values, session, options) as needs:
        task = _task(needs, session, options, daemon=daemon)
        if not join:
            return _started(task, session, name=getattr(fn, "__name__", type(fn).__name__))
        runner.carry_out(task, session)
    return None


class ProcessContext(BackgroundRun):
    """The processes of a call with `join=False`, by rank: torch's class of this name, and a background run.

    `processes` have `pid`, `sentinel`, `exitcode`, `is_alive()` and `join(timeout)`, `sentinels` maps each
    process's sentinel to its rank. `results` are what the function has returned, None for a rank that has
    returned nothing yet, or what can't be pickled.
    """

    def __init__(self, standing: Standing, processes: Sequence[RankProcess]) -> None:
        super().__init__(standing)
        self.processes = list(processes)
        self.sentinels = {process.sentinel: process.rank for process in processes}
        for process in processes:
            process.standing = standing

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until all processes have ended, at most `timeout` seconds; return whether they have.

        `grace_period` are the seconds that ranks have for their `finally` blocks if one fails from now on.

        Raises
        ------
        RankRaised, RankDied
            A rank has failed; the others are gone.

        """
        if grace_period is not None:
            self._standing.living.allow(grace_period)
        return self.wait(timeout)

    def pids(self) -> list[int]:
        """Return the process ids by rank."""
        return [process.pid for process in self.processes]


class RankProcess:
    """One process of a context, as much of multiprocessing's `Process` as others ask for.

    `sentinel` is ready to be read when it has ended, as long as this object lives.
    """

    standing: Standing
    """Of the run; its context sets it."""

    def __init__(self, *, rank: int, pid: int, sentinel: int) -> None:
        self.rank = rank
        self.pid = pid
        self.name = f"rank {rank}"
        self.sentinel = os.dup(sentinel)
        weakref.finalize(self, os.close, self.sentinel)

    def is_alive(self) -> bool:
        """Tell whether it runs."""
        return not wait_readable(self.sentinel, 0)

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        wait_readable(self.sentinel, timeout)

    @property
    def exitcode(self) -> int | None:
        """The exit code once the run is over, None before; negative for a signal."""
        run = self.standing.run
        return None if run is None else run.exitcodes[self.rank]

    def __repr__(self) -> str:
        return f"<RankProcess {self.name} pid={self.pid} {'alive' if self.is_alive() else 'ended'}>"


def _session() -> Session:
    session = current_session()
    if session is None:
        raise RuntimeError(
            "this works in a notebook with %load_ext nbshm. Elsewhere, in a parallel cell too, "
            "call torch.multiprocessing's function of the same name."
        )
    return session


@contextmanager
def _at_hand(values: dict[str, Any], session: Session, options: Options) -> Iterator[Needs]:
    """Give the needs of a call; ranks that are forked inside find the values, as they copy the notebook.

    What can't travel is called by the names that the caller knows.
    """
    forks, namespace = options.start_method == "fork", session.notebook.namespace
    try:
        if forks:
            namespace.update(values)
        yield Needs(names=dict.fromkeys(values, "the call")) if forks else Needs(names={}, extra=values)
    except CannotSend as error:
        raise _in_the_callers_words(error) from None
    finally:
        for name in values if forks else ():
            namespace.pop(name, None)


def _task(needs: Needs, session: Session, options: Options, *, daemon: bool) -> Task:
    # Under nbshm's own directory, as the frame of this line is none of the person's.
    origin = Origin(filename=f"{OWN_DIRECTORY}<a call of fn>", line=1)
    body = Body(source=_SOURCE, cell=_SOURCE, origin=origin, is_call=True, daemon=daemon)
    session.get_ready()
    return Task.allowed(
        body=body,
        analysis=Analysis(needs=needs),
        options=options,
        cell=f"In [{running_cell(session.shell, session.notebook.cells)}]",
    )


def _started(task: Task, session: Session, *, name: str) -> ProcessContext:
    processes: list[RankProcess] = []

    def note(workers: Workers) -> None:
        processes.extend(
            RankProcess(rank=worker.rank, pid=worker.pid, sentinel=worker.sentinel) for worker in workers
        )

    return ProcessContext(background.launch(task, session, name=name, note=note), processes)


def _in_the_callers_words(error: CannotSend) -> CannotSend:
    """Call what can't travel by the names that the caller knows."""
    path = error.path.replace(_FUNCTION, "fn").replace(_ARGUMENTS, "args")
    return CannotSend(path, reason=error.reason, remedy=error.remedy, used=error.used, action=error.action)
