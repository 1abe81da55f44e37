"""The kernel's interrupt while a run is started and supervised: noted, and looked at when it suits.

A KeyboardInterrupt may come between any two bytecodes, so also where a process would be lost by it, or half a
message. Blocking the signal is no help: a kernel has other threads, which take it then.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

PRESSES = 3
"""Interrupts that are waited with before the next is raised: whoever should look at them hangs then."""


@contextlib.contextmanager
def interrupts_put_off() -> Iterator[Callable[[], None]]:
    """Raise an interrupt that comes inside the block when that has been left, or calls what it is given."""
    noted: list[None] = []

    def note() -> bool:
        noted.append(None)
        return len(noted) < PRESSES

    def heed() -> None:
        if noted:
            raise KeyboardInterrupt

    with interrupts_noted(note):
        yield heed
    heed()


@contextlib.contextmanager
def closing_undisturbed() -> Iterator[contextlib.ExitStack]:
    """Give a stack that is closed whole, interrupts being put off: half of it would lose memory and files."""
    with contextlib.ExitStack() as stack:
        try:
            yield stack
        except BaseException as error:
            with interrupts_put_off():
                if stack.__exit__(type(error), error, error.__traceback__):
                    return
            raise
        with interrupts_put_off():
            stack.close()


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


@contextlib.contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Block SIGINT in this thread: what is started meanwhile is born with it blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # may raise what came just before
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
