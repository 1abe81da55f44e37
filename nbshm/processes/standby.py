"""Workers that stand by: processes of the forkserver, made ahead, that wait to be told who they are.

To make a process takes two thirds of the time that a short cell does. So a moment after a run has ended as
many are made as it had ranks, by a thread that ends with that. They know nothing of the notebook, use next to
no memory of their own, and serve one run, like any worker.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable

from nbshm.processes.newcomers import Newcomer

_MOMENT = 0.05
"""Seconds after which new ones are made: the cell's end is to be seen first."""


class Standby:
    """The workers that stand by; `make` asks for one."""

    def __init__(self, make: Callable[[], Newcomer]) -> None:
        self._make = make
        self._ready: deque[Newcomer] = deque()
        self._wanted = 0
        self._filling = threading.Lock()
        self._timer: threading.Timer | None = None

    def __len__(self) -> int:
        return len(self._ready)

    def take(self, server: int | None) -> Newcomer | None:
        """Return one that lives and comes from that forkserver, None if there is none."""
        while self._ready:
            newcomer = self._ready.popleft()
            if newcomer.server == server and newcomer.lives:
                if not newcomer.is_stopped:
                    return newcomer
                newcomer.kill()  # it would not hear that nobody wants it
            newcomer.close()
        return None

    def want(self, many: int) -> None:
        """Have that many stand by: those that are too many go, those that are missing come in a moment."""
        self._wanted = many
        self._drop(many)
        if self._timer is not None:
            self._timer.cancel()
        if len(self) < many and not self._filling.locked():  # who fills looks at how many are wanted
            self._timer = threading.Timer(_MOMENT, self._fill)
            self._timer.daemon = True
            with contextlib.suppress(RuntimeError):  # without another thread the next run starts its own
                self._timer.start()

    def close(self) -> None:
        """Let all go, and wait for the thread that makes them."""
        self.want(0)
        with self._filling:
            self._drop(0)

    def forget(self) -> None:
        """Let go in a forked child of the kernel."""
        for newcomer in self._ready:
            newcomer.forget()

    def _fill(self) -> None:
        # What goes wrong the next run will meet, and tell.
        with self._filling, contextlib.suppress(OSError, EOFError):
            while len(self) < self._wanted:
                self._ready.append(self._make())

    def _drop(self, left: int) -> None:
        while len(self) > left:
            self._ready.pop().close()
