"""Run a notebook cell in several processes, with the notebook's own functions, tensors and arrays.

    %load_ext nbshm

    %%parallel nprocs=4
    for i, j in nbshm.claim(np.ndindex(out.shape[:2])):
        out[i, j] = smooth(grid[i, j])

`front.magics` is the door, `runs.runner` one parallel cell from text to results; `CONTRIBUTING.md` has the
map of the rooms. Nothing heavy is imported here: names are fetched when they are first used.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from nbshm.errors import CannotSend, NoRoom, ParallelError, RunTimedOut
    from nbshm.failures.rank_errors import RankDied, RankRaised
    from nbshm.runs.last import Run
    from nbshm.session import Session
    from nbshm.sharing import empty, share, zeros
    from nbshm.starting import spawn, start_processes
    from nbshm.worker.ranks import barrier, claim, device, lock, progress

    last: Run | None

__version__ = "0.1.0"

__all__ = [
    "CannotSend",
    "NoRoom",
    "ParallelError",
    "RankDied",
    "RankRaised",
    "RunTimedOut",
    "barrier",
    "claim",
    "device",
    "empty",
    "last",
    "lock",
    "progress",
    "share",
    "spawn",
    "start_processes",
    "zeros",
]

_HOMES = {
    "nbshm.errors": ("CannotSend", "NoRoom", "ParallelError", "RunTimedOut"),
    "nbshm.failures.rank_errors": ("RankDied", "RankRaised"),
    "nbshm.sharing": ("empty", "share", "zeros"),
    "nbshm.starting": ("spawn", "start_processes"),
    "nbshm.worker.ranks": ("barrier", "claim", "device", "lock", "progress"),
}


def __getattr__(name: str) -> Any:
    """Fetch a public name from its room."""
    if name == "last":
        session = _session()
        return None if session is None else session.last
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'nbshm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Load the extension; loading it twice is fine."""
    from nbshm.extension import load  # noqa: PLC0415  # only IPython needs it

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Unload the extension: end what runs and take everything back."""
    from nbshm.extension import unload  # noqa: PLC0415  # only IPython needs it

    unload(shell)


def _session() -> Session | None:
    extension = sys.modules.get("nbshm.extension")
    return None if extension is None else extension.current_session()
