"""A body run in the worker's shell, and the ways in which one ends."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

from nbshm.events import Note
from nbshm.failures.chains import safe_message
from nbshm.failures.packed_exceptions import Dumps, ExceptionStandIn
from nbshm.failures.tracebacks import ExceptionReport
from nbshm.jobs import Body
from nbshm.worker.cell_warnings import cells_by_number
from nbshm.worker.refusals import nobody_at_the_keyboard
from nbshm.worker.shell import WorkerShell, warm_up
from nbshm.worker.streams import Voice


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyValue:
    """The body ran to its end, or left by `sys.exit()`; the value of its last expression."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyRaised:
    """The body raised."""

    report: ExceptionReport


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyExited:
    """The body called `sys.exit` with something other than success, at `line` (`In [7] line 5`)."""

    code: int
    text: str | None
    line: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyInterrupted:
    """The body was ended by the interrupt that nbshm sent, whatever it raised on its way out."""


BodyEnd: TypeAlias = BodyValue | BodyRaised | BodyExited | BodyInterrupted


def run_body(
    body: Body,
    module: ModuleType,
    *,
    voice: Voice,
    interrupted: Callable[[], bool],
    dumps: Dumps = pickle.dumps,
) -> BodyEnd:
    """Run a body in a module and return how it ended.

    `interrupted` tells whether nbshm's interrupt has arrived. `dumps` is for the exception.
    """
    shell = warm_up()
    shell.adopt(module)
    cells = shell.compile.cells
    try:
        with shell.at_work(voice, interrupted), nobody_at_the_keyboard(), cells_by_number(cells):
            end = _end_of(body, shell, dumps)
            if isinstance(end, BodyValue):
                _tell_of_tasks(shell, voice)
            return end
    except KeyboardInterrupt:  # when the body had ended already, or while its failure was being reported
        return BodyInterrupted()


def _end_of(body: Body, shell: WorkerShell, dumps: Dumps) -> BodyEnd:
    try:
        return BodyValue(value=shell.execute(shell.prepare(body)))
    except BaseException as error:  # noqa: BLE001  # every way in which code can end is told
        if shell.interrupted():
            return BodyInterrupted()
        if isinstance(error, SystemExit):
            return _exit(error, shell)
        return BodyRaised(report=_report(error, shell, dumps))


def _tell_of_tasks(shell: WorkerShell, voice: Voice) -> None:
    """Say which tasks of asyncio the body has left running: with it their loop stands still."""
    for line, number in shell.event_loop.cancel_tasks(shell.compile.cells).items():
        what, was = ("a task", "was") if number == 1 else (f"{number} tasks", "were")
        came = f"{what} that had come to {line} {was} still running when the body ended, and {was} cancelled"
        voice.say(Note(rank=voice.rank, text=f"{came}: await what is to end."))


def _report(error: BaseException, shell: WorkerShell, dumps: Dumps) -> ExceptionReport:
    """Report what a body has raised; where an exception keeps itself from being told, say at least where."""
    links = sys.exc_info()[2]
    try:
        return shell.report(error, dumps=dumps)
    except Exception as problem:  # noqa: BLE001  # attributes and metaclasses of exceptions are foreign code
        kind, why = type.__repr__(type(error)), f"{type(problem).__name__}: {safe_message(problem)}"
        stand_in = ExceptionStandIn(f"{kind} was raised here; it can't be told more, as that raises {why}")
        return shell.report(stand_in.with_traceback(links))


def _exit(error: SystemExit, shell: WorkerShell) -> BodyEnd:
    """Take `sys.exit` as Python does: None and 0 are success, a number is the code, all else a text."""
    match error.code:
        case None | 0:
            return BodyValue(value=None)
        case int(code):
            return BodyExited(code=int(code), text=None, line=shell.report(error).where)
        case _:
            return BodyExited(code=1, text=safe_message(error), line=shell.report(error).where)
