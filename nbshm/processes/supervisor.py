"""Watch a run's workers from their start to their end, and tell what happens as events.

    channels ─┐
    pipes ────┼─▶ Listener ─▶ events ─▶ the caller
    sentinels ┘                 └─▶ Course ─▶ rungs of the ladder ─▶ the workers
    interrupt(), stop() ────────────▶┘        Barrier, Farewells ─▶─┘
    ask_for_stacks() ──▶ Lookout ─▶ questions ─────────────────────▶┘

Nothing here waits for one worker alone: a job that one does not read, a flood that another prints, a third
that has been stopped keep nobody from the rest. It may run in any thread: who runs it in the main thread
has the kernel's interrupts noted meanwhile (`kernel_signals`).
"""

from __future__ import annotations

import collections
import os
import pickle
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Literal, TypeAlias

from nbshm.events import Ended, Event, Tick
from nbshm.processes.barriers import Barrier
from nbshm.processes.course import Course, Verdict
from nbshm.processes.endings import step
from nbshm.processes.farewells import Farewells
from nbshm.processes.kernel_signals import PRESSES
from nbshm.processes.listeners import Listener
from nbshm.processes.lookout import GLANCE_SECONDS, Dumps, Lookout
from nbshm.processes.selection import Selection
from nbshm.processes.vitals import Vitals
from nbshm.processes.workers import Workers
from nbshm.wire.messages import Alone, Arrived, Release

Wish: TypeAlias = Literal["interrupt", "stop"]

TICK_SECONDS = 0.1
"""Seconds after which a view may redraw although nothing has been said."""


class Supervisor:
    """The supervision of one run; iterate over it once for its events, then ask for the `verdict`.

    `timeout` counts from the first rank's `Started`. `token` marks displays in the ranks' text, as the
    workers know it. The workers are the caller's to close.
    """

    def __init__(
        self, workers: Workers, *, grace: float = 2.0, timeout: float | None = None, token: str | None = None
    ) -> None:
        self._workers = workers
        self._listeners = [Listener(worker, token=token or os.urandom(8).hex()) for worker in workers]
        self._course = Course([worker.pid for worker in workers], grace=grace, timeout=timeout)
        self._barrier = Barrier(len(workers))
        self._farewells = Farewells(len(workers))
        self._wishes: collections.deque[Wish] = collections.deque()
        self._selection = Selection()
        self._vitals = Vitals(time.monotonic())
        self._lookout = Lookout(workers, time.monotonic())
        self._next_tick = time.monotonic() + TICK_SECONDS

    def __iter__(self) -> Iterator[Event]:
        while self._course.living:
            yield from self._turn()

    @property
    def verdict(self) -> Verdict:
        """How the run has ended, as far as it has."""
        return self._course.verdict()

    def allow(self, grace: float) -> None:
        """Let that be the grace period of an ending that has not begun; from any thread."""
        self._course.grace = grace

    def interrupt(self) -> bool:
        """End the run as the person's interrupt does; from any thread, also from a signal handler.

        Tells whether it will be looked at: with so many that wait, whoever should look at them hangs.
        """
        self._wish("interrupt")
        return len(self._wishes) < PRESSES

    def stop(self) -> None:
        """End the run because the program wants it; from any thread."""
        self._wish("stop")

    def ask_for_stacks(self) -> Future[Dumps]:
        """Ask where the living ranks are; from any thread but the one that supervises."""
        answer = self._lookout.ask()
        self._selection.wake()
        return answer

    @property
    def last_look(self) -> Dumps:
        """Where ranks were when the run's time was over, by rank."""
        return self._lookout.last_look

    def take_descriptors(self, rank: int) -> list[int]:
        """Hand over the descriptors that came with the rank's result, to be closed by the caller."""
        return self._listeners[rank].take_descriptors()

    def tell(self, rank: int, message: Release | Arrived | Alone) -> None:
        """Send a message to a rank, as soon as that takes it."""
        self._workers[rank].channel.post(pickle.dumps(message))

    def close(self) -> None:
        """Close what supervision has opened, and descriptors that nobody has taken."""
        self._lookout.close()
        self._selection.close()
        for listener in self._listeners:
            listener.close()

    def _wish(self, wish: Wish) -> None:
        self._wishes.append(wish)
        self._selection.wake()

    def _turn(self) -> Iterator[Event]:
        """Wait until something happens, tell it, and do what it calls for."""
        for listener in self._selection.wait(self._listeners, self._patience()):
            for said in listener.listen():
                event = self._vitals.complete(said) if isinstance(said, Ended) else said
                self._take_in(event)
                yield event
        self._fulfil_wishes()
        yield from self._lookout.look(time.monotonic())
        self._vitals.look(self._workers, time.monotonic())
        self._climb()
        if time.monotonic() >= self._next_tick:
            self._next_tick = time.monotonic() + TICK_SECONDS
            yield Tick()

    def _patience(self) -> float:
        next_time = self._course.next_time()
        until = self._next_tick if next_time is None else min(next_time, self._next_tick)
        patience = max(0.0, until - time.monotonic())
        return min(patience, GLANCE_SECONDS) if self._lookout.is_looking() else patience

    def _take_in(self, event: Event) -> None:
        now = time.monotonic()
        self._course.see(event, now)
        self._lookout.see(event, now)
        for rank, release in self._barrier.see(event).items():
            self.tell(rank, release)
        for rank, alone in self._farewells.see(event).items():
            self.tell(rank, alone)

    def _fulfil_wishes(self) -> None:
        while self._wishes:
            wish = self._wishes.popleft()
            if wish == "stop":
                self._course.stop(time.monotonic())
            else:
                self._course.interrupt(time.monotonic())

    def _climb(self) -> None:
        now = time.monotonic()
        if self._course.is_out_of_time(now) and not self._lookout.has_looked_last(now):
            return
        for rung in self._course.due(time.monotonic()):
            for rank in self._course.living:
                step(self._workers[rank], rung)
