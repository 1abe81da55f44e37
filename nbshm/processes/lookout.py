"""Looking after ranks that say nothing: who asks where they are, who stands still, who does not end.

Each look is an `Inquiry`, and what becomes of it is an event or somebody's answer.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeAlias

from nbshm.events import Ended, Event, Lingering, Result, Stalled, Tick
from nbshm.failures.stacks import Dump
from nbshm.machine.proc import has_children, processor_seconds
from nbshm.processes.inquiries import Inquiry
from nbshm.processes.stillness import Stillness
from nbshm.processes.workers import Workers

Dumps: TypeAlias = dict[int, Dump | None]
"""What the living ranks answered, None for one that did not."""

LINGER_SECONDS = 2.0
"""Seconds after its result that a process has to end in before it is told what keeps it."""

GLANCE_SECONDS = 0.02
"""Seconds between two looks at whether an answer has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """An inquiry on behalf of somebody who waits for the answer."""

    inquiry: Inquiry
    answer: Future[Dumps]


class Lookout:
    """The questions that are open in one run. All but `ask` is for the thread that supervises."""

    def __init__(self, workers: Workers, now: float) -> None:
        self._workers = workers
        pids = [worker.pid for worker in workers]
        self._stillness = Stillness(lambda: sum(processor_seconds(pid) or 0.0 for pid in pids), now)
        self._finished: dict[int, float] = {}  # ranks whose process has not ended, and since when
        self._people: list[_Asked] = []
        self._still: Inquiry | None = None
        self._lingering: dict[int, Inquiry] = {}
        self._last: Inquiry | None = None
        self._has_looked_last = False
        self.last_look: Dumps = {}
        self._waiting: collections.deque[Future[Dumps]] = collections.deque()
        self._open = True
        self._opening = threading.Lock()

    def ask(self) -> Future[Dumps]:
        """Ask where the ranks are; from any thread. When the run is over, they are nowhere."""
        future: Future[Dumps] = Future()
        with self._opening:
            if self._open:
                self._waiting.append(future)
            else:
                future.set_result({})
        return future

    def see(self, event: Event, now: float) -> None:
        """Take in an event."""
        if not isinstance(event, Tick):
            self._stillness.end(now)
        match event:
            case Result(rank=rank):
                self._finished[rank] = now
            case Ended(rank=rank):
                self._finished.pop(rank, None)
                self._lingering.pop(rank, None)
            case _:
                pass

    def look(self, now: float) -> Iterator[Event]:
        """Begin and end what is due; tell what there is to tell."""
        self._answer_people(now)
        yield from self._look_at_the_still(now)
        yield from self._look_at_the_finished(now)

    def has_looked_last(self, now: float) -> bool:
        """Look where ranks are before they are ended; tell whether `last_look` has it."""
        if self._last is None:
            self._last = Inquiry(self._workers, now)
        found = self._last.look(now)
        if found is not None:
            self.last_look, self._has_looked_last = found, True
        return self._has_looked_last

    def is_looking(self) -> bool:
        """Tell whether an answer may come at any moment."""
        last = self._last is not None and not self._has_looked_last
        return bool(last or self._people or self._waiting or self._still or self._lingering)

    def close(self) -> None:
        """Answer everybody who still waits: there is nothing to be seen any more."""
        with self._opening:
            self._open = False
        for asked in self._people:
            asked.answer.set_result({})
        while self._waiting:
            self._waiting.popleft().set_result({})

    def _answer_people(self, now: float) -> None:
        while self._waiting:
            self._people.append(_Asked(inquiry=Inquiry(self._workers, now), answer=self._waiting.popleft()))
        for asked in list(self._people):
            dumps = asked.inquiry.look(now)
            if dumps is not None:
                self._people.remove(asked)
                asked.answer.set_result(dumps)

    def _look_at_the_still(self, now: float) -> Iterator[Event]:
        if self._still is None and self._stillness.has_come(now):
            self._still = Inquiry(self._workers, now)
        dumps = None if self._still is None else self._still.look(now)
        if dumps is not None:
            self._still = None
            yield Stalled(
                dumps=dumps,
                parents=tuple(
                    worker.rank for worker in self._workers if has_children(worker.pid) is not False
                ),
            )

    def _look_at_the_finished(self, now: float) -> Iterator[Event]:
        for rank, since in list(self._finished.items()):
            if now - since >= LINGER_SECONDS:
                del self._finished[rank]
                self._lingering[rank] = Inquiry([self._workers[rank]], now)
        for rank, inquiry in list(self._lingering.items()):
            dumps = inquiry.look(now)
            if dumps is not None:
                del self._lingering[rank]
                yield Lingering(rank=rank, dump=dumps.get(rank))
