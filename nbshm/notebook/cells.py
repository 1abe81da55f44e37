"""Where the body of a parallel cell lies: the running cell's text, its number and the name of its code."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING

from nbshm.failures.frames import function_of
from nbshm.jobs import Body, Origin

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_MAGIC = "%%parallel"


def current_body(source: str, line: str, shell: InteractiveShell, numbers: Mapping[str, int]) -> Body:
    """Place the text below a `%%parallel` line in the cell that runs now.

    `numbers` are the execution counts of cells by the names of their code; the shell's own counter is already
    the next cell's in some versions of IPython.

    Where no cell holds that text, because a program handed it to `run_cell_magic`, it becomes a cell of its
    own under its magic's line, so that its lines are told in the same way.
    """
    raw, filename = _raw_cell(shell), _code_name(shell)
    first, number = line_of_body(raw, source), running_cell(shell, numbers)
    if first is None or filename is None:
        raw, first, filename = f"{_MAGIC} {line}\n{source}", 2, f"<{_MAGIC} called in In [{number}]>"
    return Body(
        source=source,
        cell=raw,
        origin=Origin(filename=filename, line=first, cell=number),
        interactivity=shell.ast_node_interactivity,
    )


def running_cell(shell: InteractiveShell, numbers: Mapping[str, int]) -> int:
    """Return the number of the cell that runs now."""
    return numbers.get(_code_name(shell) or "", shell.execution_count)


def line_of_body(cell: str, source: str) -> int | None:
    """Return the number of the cell's line at which the body begins; None if it is not this cell's."""
    cell, source = cell.rstrip("\n"), source.rstrip("\n")
    if not cell.endswith(source):
        return None
    above = cell[: len(cell) - len(source)]
    magic = above.rstrip("\n").rpartition("\n")[2]
    return above.count("\n") + 1 if above.endswith("\n") and magic.lstrip().startswith(_MAGIC) else None


def _raw_cell(shell: InteractiveShell) -> str:
    history = shell.history_manager.input_hist_raw if shell.history_manager else []
    return history[-1] if history else ""


def _code_name(shell: InteractiveShell) -> str | None:
    """Return the file name under which the running cell was compiled, as its tracebacks show it.

    Found in the frames that led here: the text that IPython made the name from is not kept everywhere, and
    another magic above (`%%time`) compiles under a name of its own, which linecache does not know.
    """
    frame: FrameType | None = inspect.currentframe()
    while frame is not None:
        code = frame.f_code
        if (
            function_of(code) == "<module>"
            and frame.f_globals is shell.user_ns
            and code.co_filename in linecache.cache
        ):
            return code.co_filename
        frame = frame.f_back
    return None
