"""Which view a run gets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nbshm.views.page import PageView
from nbshm.views.text import TextView
from nbshm.views.view import View

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def choose_view(shell: InteractiveShell) -> View:
    """Choose the page for a notebook, text for a terminal and for a cell whose stdout goes elsewhere.

    Under `%%capture` or `redirect_stdout` the person wants the ranks' output as text where it was sent.
    """
    in_kernel = hasattr(shell, "kernel")
    own_stdout = type(sys.stdout).__module__.partition(".")[0] == "ipykernel"
    return PageView() if in_kernel and own_stdout else TextView()
