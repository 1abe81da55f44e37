"""Names that a process has not, newer ones and IPython's own: tasks that read them are told so.

The processes of a pool or an executor know the notebook of the moment in which they were started. What a
task refers to is found by name (see `stand_ins.py`); what a function of the notebook reads, Python itself
looks up.
"""

from __future__ import annotations

import sys
from types import TracebackType

from nbshm.given_names import IPYTHON_NAMES


def explain_late_name(error: Exception) -> None:
    """Add words to what a task has raised, if that is for a name that the notebook here has not."""
    if type(error) is NameError and _is_missing(error.name, error.__traceback__):
        remedy = _FOR_CELLS if error.name in _IPYTHONS else _REMEDY.format(error.name)
        error.args = (f"{error}. {remedy}", *error.args[1:])


_IPYTHONS = IPYTHON_NAMES | {"display"}

_FOR_CELLS = (
    "There is no IPython in this process, where `!` commands, magics and display() are not known. "
    "Use subprocess and print, or run the function in a parallel cell."
)

_REMEDY = (
    "This process has the notebook as it was when the process was started; if {0!r} has been defined since, "
    "make the pool again, or pass it as an argument."
)


def _is_missing(name: str | None, trace: TracebackType | None) -> bool:
    """Tell whether code of the notebook has read a global name that is not there."""
    namespace = vars(sys.modules["__main__"])
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    is_notebooks = trace is not None and trace.tb_frame.f_globals is namespace
    return is_notebooks and name is not None and name not in namespace
