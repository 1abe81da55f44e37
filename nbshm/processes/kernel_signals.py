"""The kernel's interrupt while a run is supervised: noted and looked at when it suits, raised nowhere.

A KeyboardInterrupt may come between any two bytecodes, so also in the middle of a view's or a message's work.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def interrupts_noted(note: Callable[[], bool]) -> Iterator[None]:
    """Have `note` called for each SIGINT; where it returns False, KeyboardInterrupt is raised after all.

    Signals are the main thread's: in any other thread nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        if not note():
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
