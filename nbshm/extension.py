"""Loading and unloading the extension: which session there is, and for which shell."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nbshm.front.magics import MagicsInstallation
from nbshm.session import Session
from nbshm.views.values import RichResults

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class _Extension:
    """A session, and its door in the shell."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.session = Session(shell)
        self.session.open()
        self._magics = MagicsInstallation(self.session)
        self._results = RichResults(shell)
        atexit.register(self.close)

    def close(self) -> None:
        """Take everything back."""
        atexit.unregister(self.close)
        self._results.close()
        self._magics.close()
        self.session.close()


_loaded: dict[int, _Extension] = {}  # by the id of the shell: IPython asks to unload with the shell alone


def load(shell: InteractiveShell) -> None:
    """Open a session for the shell if it has none."""
    if id(shell) in _loaded:
        return
    for line in _limits(shell):
        print(f"nbshm: {line}")  # noqa: T201  # told once
    _loaded[id(shell)] = _Extension(shell)


def _limits(shell: InteractiveShell) -> Iterator[str]:
    """Yield what will not work here."""
    if sys.platform != "linux":
        yield "this system is not Linux; only start_method=spawn is likely to work."
    if any(name not in shell.user_ns for name in shell.user_global_ns if not name.startswith("_")):
        module = shell.user_global_ns.get("__name__", "MODULE")
        yield (
            "this shell is embedded in other code. A parallel cell has the shell's names, which %who lists; "
            f"`from {module} import *` makes those of the module such names. A pool can't be sent functions "
            "that are defined here."
        )


def unload(shell: InteractiveShell) -> None:
    """Close the shell's session if it has one."""
    extension = _loaded.pop(id(shell), None)
    if extension is not None:
        extension.close()


def current_session() -> Session | None:
    """Return the session that was opened last."""
    return next((extension.session for extension in reversed(_loaded.values())), None)
