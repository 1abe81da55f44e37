"""Asking workers where they are, without waiting for one that does not answer.

A worker's own thread answers within a twentieth of a second. One that sits in compiled code with the GIL held
never does; then a signal, which another thread than the one that is stuck takes, has its stacks written.
"""

from __future__ import annotations

from collections.abc import Iterable

from nbshm.failures.stacks import Dump
from nbshm.processes.workers import Worker
from nbshm.wire.whereabouts import Question

PATIENCE = 0.4
"""Seconds that a worker's own thread has to answer, on a machine that is busy."""

SIGNAL_PATIENCE = 0.2
"""Seconds that the signal has then; it needs thousandths."""


class Inquiry:
    """One question to the workers that live; `look` until it returns the answers."""

    def __init__(self, workers: Iterable[Worker], now: float) -> None:
        self._open: list[tuple[Worker, Question]] = [
            (worker, worker.ask()) for worker in workers if worker.exitcode is None
        ]
        self._signal_time = now + PATIENCE
        self._last_time = now + PATIENCE + SIGNAL_PATIENCE
        self._signalled = False
        self._dumps: dict[int, Dump | None] = {}

    def look(self, now: float) -> dict[int, Dump | None] | None:
        """Return the dumps by rank once all are there or time is over; None for a rank that says nothing."""
        self._take_answers()
        if self._open and now >= self._signal_time and not self._signalled:
            self._signalled = True
            for worker, _ in self._open:
                worker.demand_stacks()
        if self._open and now < self._last_time:
            return None
        self._take_what_the_signal_wrote()
        return self._dumps

    def _take_answers(self) -> None:
        waiting = []
        for worker, question in self._open:
            if worker.exitcode is not None:
                continue
            dump = worker.answer(question)
            if dump is None:
                waiting.append((worker, question))
            else:
                self._dumps[worker.rank] = dump
        self._open = waiting

    def _take_what_the_signal_wrote(self) -> None:
        for worker, question in self._open:
            self._dumps[worker.rank] = worker.dump_since(question)
        self._open = []
