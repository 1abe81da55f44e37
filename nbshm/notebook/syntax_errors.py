"""A parallel cell that does not compile, shown as IPython shows any cell that does not.

IPython shows a syntax error in a cell without frames, but one that a magic raises with all frames that led
to the magic, and asks no exception of that kind how it wants to be shown. So it has a class of its own, and
the shell the handler that IPython provides for classes of one's own choice.
"""

# IPython is typed in part:
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class CellSyntaxError(SyntaxError):
    """The body of a parallel cell does not compile, and nothing was started; `kind` is what was raised."""

    def __init__(self, *args: Any, kind: type[SyntaxError]) -> None:
        super().__init__(*args)
        self.kind = kind


@contextmanager
def raised_for_cells(text: str, filename: str) -> Iterator[None]:
    """Turn a syntax error that is found in the text into one that is shown as that of its cell."""
    try:
        yield
    except SyntaxError as error:
        message, (_, line, offset, _, *end) = error.args
        source = text.splitlines(keepends=True)[line - 1]  # the compiler looks for it in a file, in vain
        raise CellSyntaxError(message, (filename, line, offset, source, *end), kind=type(error)) from None


def install(shell: InteractiveShell) -> None:
    """Show these errors without frames, unless the person has a handler of their own."""
    if not shell.custom_exceptions:
        shell.set_custom_exc((CellSyntaxError,), _show)


def remove(shell: InteractiveShell) -> None:
    """Take the handler away."""
    if shell.custom_exceptions == (CellSyntaxError,):
        shell.set_custom_exc((), None)


def _show(
    shell: InteractiveShell,
    _kind: type[BaseException],
    error: CellSyntaxError,
    _trace: TracebackType | None,
    tb_offset: int | None = None,  # noqa: ARG001  # IPython hands it over by that name
) -> Any:
    plain = error.kind(*error.args)
    frames: Any = []  # what IPython itself hands over for a cell, whatever its annotation says
    lines = shell.SyntaxTB.structured_traceback(error.kind, plain, frames)
    shell._showtraceback(error.kind, plain, lines)  # noqa: SLF001  # what front ends override to show an error
    return lines
