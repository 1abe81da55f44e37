"""The kernel's SIGINT in a worker: noted, raised as KeyboardInterrupt, held back where it would do harm."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class KernelInterrupts:
    """The interrupts that this process was sent; it is for the main thread."""

    def __init__(self) -> None:
        self._count = 0
        self._holding = 0
        self._owed = False

    def listen(self) -> None:
        """Take SIGINT from now on, also one that has been waiting."""
        signal.signal(signal.SIGINT, self._handle)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def arrived(self) -> bool:
        """Tell whether one has come: if not, a KeyboardInterrupt is the code's own."""
        return self._count > 0

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Put an interrupt off until the block is left: a message that is cut in two can't be mended."""
        self._holding += 1
        try:
            yield
        finally:
            self._holding -= 1
        if self._owed and not self._holding:
            self._owed = False
            raise KeyboardInterrupt

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._holding:
            self._owed = True
        else:
            raise KeyboardInterrupt
