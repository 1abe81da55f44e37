"""Which view a run gets, by who is there to see it."""

from __future__ import annotations

import contextvars
import math
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from nbshm.views.outputs import label_displays
from nbshm.views.page import PageView
from nbshm.views.text import TextView
from nbshm.views.view import View

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def choose_view(shell: InteractiveShell) -> View:
    """Choose the page for a notebook; text for a terminal, a console, and a cell whose stdout goes elsewhere.

    Under `%%capture` or `redirect_stdout` the person wants the ranks' output as text where it was sent.
    Consoles (qtconsole, jupyter console) ignore an output that is put in another's place, so a live view
    would be all that they show; notebooks (JupyterLab, Notebook, VS Code, Colab) name the cell that they
    want run, and consoles do not.
    """
    request = _request(shell)
    if request is None or not _is_own_stdout():
        return TextView()
    if not request["content"].get("allow_stdin", True):
        # Nobody at the keyboard: nbclient, nbconvert, papermill. They keep the state of every widget in the
        # saved notebook, of closed ones too, and so two equal runs would differ by how long they took.
        return PageView(patience=math.inf)
    return PageView() if _names_its_cell(request["metadata"]) else TextView()


def showing_in_its_cell(shell: InteractiveShell, work: Callable[[], None]) -> Callable[[], None]:
    """Return work for a thread whose outputs go where the person wants them.

    A front end shows them with the cell that runs now, also later. Without a person nothing but the outputs
    of a running cell is kept: then they go to the cell that runs when they come (in an empty context
    ipykernel takes its last request).
    """
    request = _request(shell)
    if request is not None and not request["content"].get("allow_stdin", True):
        return partial(contextvars.Context().run, work)

    def work_with_header() -> None:
        label_displays(shell, header)
        work()

    header = getattr(shell.display_pub, "parent_header", None)
    return partial(contextvars.copy_context().run, work_with_header)


def _request(shell: InteractiveShell) -> dict[str, Any] | None:
    """Return the message that asked for the running cell; None where there is no kernel."""
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return None
    return {"content": {}, "metadata": {}, **(kernel.get_parent("shell") or {})}


def _names_its_cell(metadata: dict[str, Any]) -> bool:
    return "cellId" in metadata or "cell_id" in metadata.get("colab", {})


def _is_own_stdout() -> bool:
    return type(sys.stdout).__module__.partition(".")[0] == "ipykernel"
