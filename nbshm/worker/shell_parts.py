"""Parts of a worker's shell: what IPython has there, with nothing kept and nothing shown."""

# IPython is typed in part:
# mypy: allow-untyped-calls

from __future__ import annotations

import io
import tokenize
from typing import TYPE_CHECKING, Any, NoReturn

from IPython.core.autocall import ExitAutocall
from IPython.core.displayhook import DisplayHook
from IPython.core.profiledir import ProfileDir
from IPython.display import display
from traitlets import observe

if TYPE_CHECKING:
    from nbshm.worker.shell import WorkerShell

# Who tells of an exception: whoever runs the body of the body's own, IPython of those in cells that the body
# runs itself (`get_ipython().run_cell`), and in what follows the body (figures that can't be drawn).
AT_BODY, IN_BODY, ELSEWHERE = 0, 1, 2

_BLANK = {tokenize.ENDMARKER, tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT}


class LastValue(DisplayHook):
    """Keeps the last expression's value instead of showing it: the kernel shows what all ranks gave."""

    shell: WorkerShell

    def quiet(self) -> bool:
        """Tell whether the cell ends in `;`."""
        tokens = tokenize.generate_tokens(io.StringIO(self.shell.transformed).readline)
        last = [token for token in tokens if token.type not in _BLANK][-1:]
        return bool(last) and last[0].string == ";"

    def __call__(self, result: Any = None) -> None:
        """Keep the value, without touching `_` and `Out`; show that of a cell that the body runs itself."""
        if result is None or self.quiet():
            return
        if self.shell.level > IN_BODY:
            display(result)
        else:
            self.show_earlier()
            self.shell.value = result

    def show_earlier(self) -> None:
        """Show the value that is kept: another statement follows, where more than the last one are shown."""
        value, self.shell.value = self.shell.value, None
        if value is not None:
            display(value)


class Leave(ExitAutocall):
    """`exit()` and `quit()` in a worker: they end the body of this rank."""

    def __call__(self, code: object = None) -> NoReturn:
        """End the body as `sys.exit(code)` does."""
        raise SystemExit(code)


class NoProfile(ProfileDir):
    """A profile without directories: where IPython's own would make them, this makes none."""

    @observe("location")
    def _location_changed(self, change: Any) -> None:
        pass


class NothingKept(dict[str, Any]):
    """What magics like %cd would keep between sessions, kept nowhere."""

    def __init__(self, _directory: str = "") -> None:
        super().__init__()
