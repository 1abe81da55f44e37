"""Runs that are alive, so that a session which closes can end them first."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nbshm.processes.kernel_signals import PRESSES

if TYPE_CHECKING:
    from nbshm.processes.supervisor import Supervisor

_PATIENCE = 10.0  # seconds beyond its grace period that a run has to end in; it needs about one


class LivingRun:
    """A run, from before anything is moved for it until everything has been cleared away after it."""

    def __init__(self, *, grace: float) -> None:
        self._grace = grace
        self._thread = threading.current_thread()
        self._over = threading.Event()
        self._supervisor: Supervisor | None = None
        self._unwanted = False
        self._interrupts = 0

    def is_supervised_by(self, supervisor: Supervisor) -> None:
        """Say who can end it."""
        self._supervisor = supervisor
        if self._unwanted:
            supervisor.stop()
        if self._interrupts:
            supervisor.interrupt()

    def interrupt(self) -> bool:
        """Have it interrupted, as soon as somebody supervises it; tell whether that can be waited for."""
        self._interrupts += 1
        if self._supervisor is not None:
            self._supervisor.interrupt()
        return self._interrupts < PRESSES

    def has_ended(self) -> None:
        """Let those go on who wait for its end."""
        self._over.set()

    def end(self) -> None:
        """Have it stopped, and wait until its own thread has cleared up after it."""
        self._unwanted = True
        if self._supervisor is not None:
            self._supervisor.stop()
        if self._thread is not threading.current_thread():
            self._over.wait(self._grace + _PATIENCE)


class LivingRuns:
    """The runs of a session that are alive."""

    def __init__(self) -> None:
        self._runs: list[LivingRun] = []
        # One at a time: a run copies whole arrays back, and would undo what another has written beside it.
        self._turn = threading.RLock()

    @contextlib.contextmanager
    def one(self, *, grace: float) -> Iterator[LivingRun]:
        """Count a run among those alive, once those of other threads have ended."""
        with self._turn:
            run = LivingRun(grace=grace)
            self._runs.append(run)
            try:
                yield run
            finally:
                self._runs.remove(run)
                run.has_ended()

    def end(self) -> None:
        """End them all."""
        for run in list(self._runs):
            run.end()
