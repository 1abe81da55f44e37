"""The kernel's end of the workers' lives: a pipe that only the kernel holds open."""

from __future__ import annotations

import contextlib
import os


class Lifeline:
    """A pipe whose write end nobody but this process may hold; workers are given the read end.

    See `nbshm.worker.lifeline` for what they do with it.
    """

    def __init__(self) -> None:
        self.read_end, self._write_end = os.pipe()

    def close(self) -> None:
        """Close both ends: every worker that still lives is killed."""
        os.close(self.read_end)
        self.forget()

    def forget(self) -> None:
        """Close the write end alone, as a forked child of the kernel must."""
        with contextlib.suppress(OSError):
            os.close(self._write_end)
