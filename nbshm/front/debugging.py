"""IPython's debugger after a failed parallel cell: it has no frames to step into, and says so.

`%debug` asks the shell for the debugger, and so does whoever shows an exception while `%pdb` is on.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nbshm.errors import ParallelError, RunInterrupted
from nbshm.replacing import Replacement

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_NOTHING = (
    "There is nothing to step into: the frames of the failed rank ended with its process. "
    "Run the cell's code without its %%parallel line, then %debug."
)


def refusing_debugger(shell: InteractiveShell) -> Replacement:
    """Return what opens the shell's debugger for other exceptions than those of parallel cells only."""

    def debug(*arguments: Any, **named: Any) -> None:
        if isinstance(getattr(sys, "last_value", None), (ParallelError, RunInterrupted)):
            print(_NOTHING, file=sys.stderr)  # noqa: T201  # where IPython says that there is nothing to debug
        else:
            replacement.original(*arguments, **named)

    replacement = Replacement(shell, "debugger", debug)
    return replacement
