"""Outputs of the cell, published to whoever shows it."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from IPython import display as ipython_display

from nbshm.errors import ParallelError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_display: Any = ipython_display.display  # untyped in IPython
_update_display: Any = ipython_display.update_display
_clear_output: Any = ipython_display.clear_output


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """One output of a cell: the same in several MIME types, and its metadata."""

    data: dict[str, Any]
    metadata: dict[str, Any] = field(default_factory=dict)


def publish(bundle: Bundle, *, display_id: str | None = None) -> None:
    """Add an output to the cell; with an id it can be replaced."""
    _display(bundle.data, metadata=bundle.metadata, raw=True, display_id=display_id)


def label_displays(shell: InteractiveShell, header: dict[str, Any] | None) -> None:
    """Let what this thread displays belong to the request with that header.

    ipykernel 7 knows by context whose a thread's outputs are; before, all are those of the running cell.
    """
    register = getattr(shell.display_pub, "register_hook", None)  # its hooks are those of one thread
    if register is not None and header is not None:
        register(lambda message: {**message, "parent_header": header})


def show_failure(error: BaseException) -> None:
    """Show what a run that nobody waits for has raised, unless its view does: as IPython does for a cell."""
    if isinstance(error, ParallelError) and error.is_shown:
        error.is_shown = False  # who waits for the run later is told all
        return
    render = getattr(error, "_render_traceback_", lambda: traceback.format_exception(error))
    sys.stderr.write("\n".join(render()).rstrip() + "\n")
    sys.stderr.flush()


def replace_output(bundle: Bundle, *, display_id: str) -> None:
    """Put an output in the place of the one that was published with that id."""
    _update_display(bundle.data, metadata=bundle.metadata, raw=True, display_id=display_id)


def clear(*, wait: bool) -> None:
    """Take away what the cell shows, at once or when the next output comes."""
    _clear_output(wait=wait)
