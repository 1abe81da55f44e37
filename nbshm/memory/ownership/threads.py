"""Threads of the notebook that may be in the middle of an operation while memory is moved."""

from __future__ import annotations

import sys
import threading
from types import FrameType

from nbshm.own_code import is_the_persons

_CALLERS = frozenset({"run", "mapstar", "starmapstar"})
"""What calls compiled code in a thread, an executor, a pool of threads, whose other functions wait."""


def are_others_at_work() -> bool:
    """Tell whether another thread may be in the middle of an operation of torch.

    It has the address of the memory that it works on, and nothing tells which memory that is. So it counts
    if the person's code or torch's has called what runs there now, unless that is of the standard library, in
    which threads wait. The threads of Jupyter, of a debugger and of a progress bar run neither.
    """
    frames = sys._current_frames()  # noqa: SLF001  # the documented way
    del frames[threading.get_ident()]  # it would hold itself, and with it what all our callers have
    return any(map(_may_be_at_work, frames.values()))


def _may_be_at_work(innermost: FrameType) -> bool:
    frame: FrameType | None = innermost
    if _package(innermost) in sys.stdlib_module_names:
        return innermost.f_code.co_name in _CALLERS
    while frame is not None:
        filename = frame.f_code.co_filename
        if _package(frame) == "torch" or is_the_persons(filename):
            return True
        frame = frame.f_back
    return False


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
