"""A widget that is heard while its kernel is busy with the cell that shows it.

Front ends (JupyterLab 4.6, Notebook 7.6) send what happens to a widget to a subshell, another thread of the
kernel. ipykernel however has them answer on the shell that last published something on the widget's comm,
and for one that a running cell has made that is the busy one: a click is handled when the cell has ended.
"""

from __future__ import annotations

from typing import Any

_PIN = "_reply_subshell_id"  # private in ipykernel 7.4; a test notices where it is gone


def hears_while_busy(widget: Any) -> bool:
    """Have a widget answered by any thread; nothing may be published on its comm from the cell after that.

    Returns False where the kernel knows no such thing: then the interrupt of the kernel is the only way.
    """
    comm = widget.comm
    if not hasattr(comm, _PIN):
        return False
    delattr(comm, _PIN)
    return True
