"""Runs that are alive, so that others can stop them, ask about them, and end them with the session."""

from __future__ import annotations

import bisect
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import TYPE_CHECKING

from nbshm.failures.stacks import Dump, Reader, Stacks
from nbshm.jobs import Body
from nbshm.memory.ownership.extents import Range
from nbshm.processes.kernel_signals import PRESSES

if TYPE_CHECKING:
    from nbshm.processes.supervisor import Supervisor

_ANSWER_SECONDS = 10.0  # it needs a tenth, where its thread is not copying whole arrays

_PATIENCE = 10.0  # seconds beyond its grace period that a run has to end in; it needs about one


class LivingRun:
    """A run, from before anything is moved for it until everything has been cleared away after it.

    `name` is what a person calls it: `In [7]`, or `job (In [7])` for a background run. `mirrored` tells the
    memory of the notebook that it writes to when it ends: the notebook may resize a tensor meanwhile.
    """

    def __init__(self, *, name: str, grace: float, body: Body) -> None:
        self.name = name
        self._body = body
        self.mirrored: Callable[[], Sequence[Range]] = _nothing
        self._grace = grace
        self._thread = threading.current_thread()
        self._over = threading.Event()
        self._supervisor: Supervisor | None = None
        self._unwanted = False
        self._interrupts = 0

    def is_called(self, name: str) -> bool:
        """Tell whether a person who says that name means this run."""
        return name in {self.name, self.name.partition(" (")[0]}

    def be_attended_by(self, thread: threading.Thread) -> None:
        """Say which thread supervises it, where that is not the one that has started it."""
        self._thread = thread

    def be_supervised_by(self, supervisor: Supervisor) -> None:
        """Say who can end it."""
        self._supervisor = supervisor
        if self._unwanted:
            supervisor.stop()
        if self._interrupts:
            supervisor.interrupt()

    def interrupt(self) -> bool:
        """Have it interrupted, as soon as somebody supervises it; tell whether that can be waited for."""
        if self._supervisor is not None:
            return self._supervisor.interrupt()
        self._interrupts += 1
        return self._interrupts < PRESSES

    def stacks(self, cells: Mapping[str, int]) -> Stacks:
        """Ask where its ranks are; `cells` are the numbers of cells by the file names of their code.

        From any thread but the one that supervises it.
        """
        supervisor = self._supervisor
        dumps: dict[int, Dump | None] = {}
        if supervisor is not None:
            with contextlib.suppress(futures.TimeoutError):  # Python 3.10's is no TimeoutError
                dumps = supervisor.ask_for_stacks().result(_ANSWER_SECONDS)
        return Stacks(title=self.name, ranks=Reader(cells=cells, body=self._body).stacks(dumps))

    def allow(self, grace: float) -> None:
        """Give ranks that must stop from now on that many seconds for their `finally` blocks."""
        self._grace = grace
        if self._supervisor is not None:
            self._supervisor.allow(grace)

    def stop(self) -> None:
        """Have it stopped; the second time, at once. From any thread."""
        self._unwanted = True
        if self._supervisor is not None:
            self._supervisor.stop()

    def note_end(self) -> None:
        """Let those go on who wait for its end; nobody can do anything to it any more."""
        self._supervisor, self.mirrored = None, _nothing
        self._over.set()

    def wait_to_end(self) -> None:
        """Wait until its thread has cleared up after it, as long as one that was stopped may take."""
        if self._thread is not threading.current_thread():
            self._over.wait(self._grace + _PATIENCE)


class LivingRuns:
    """The runs of a session that are alive.

    `turn` is held by who moves the notebook's memory for a run; in the foreground until the run has ended: it
    copies whole arrays back, and would undo what another thread's run has written beside it.
    """

    def __init__(self) -> None:
        self._runs: list[LivingRun] = []
        self.turn = threading.RLock()

    def __iter__(self) -> Iterator[LivingRun]:
        return iter(list(self._runs))

    def mirroring(self, ranges: Iterable[Range]) -> tuple[LivingRun, Range] | None:
        """Return a run that will write to one of these pieces of memory when it ends, and the piece."""
        for run in self:
            theirs = sorted(run.mirrored())
            for begin, end in ranges if theirs else ():
                following = bisect.bisect_right(theirs, begin, key=lambda other: other[1])
                if following < len(theirs) and theirs[following][0] < end:
                    return run, (begin, end)
        return None

    @contextlib.contextmanager
    def counting(self, run: LivingRun) -> Iterator[None]:
        """Count a run among those alive."""
        self._runs.append(run)
        try:
            yield
        finally:
            self._runs.remove(run)
            run.note_end()

    def end(self) -> None:
        """End them all: ask each first, as their grace periods can pass together."""
        for run in self:
            run.stop()
        for run in self:
            run.wait_to_end()


def _nothing() -> Sequence[Range]:
    return ()
