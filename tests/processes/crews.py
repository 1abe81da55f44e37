"""Running the behaviours of `behaviours.py` in workers, for tests."""

from __future__ import annotations

import os
import pickle
import signal
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbshm.events import Event, Output, Result
from nbshm.processes.course import Verdict
from nbshm.processes.kernel_signals import interrupts_noted
from nbshm.processes.launcher import Launcher
from nbshm.processes.supervisor import Supervisor

METHODS = ("forkserver", "spawn", "fork")


@dataclass(slots=True, kw_only=True)
class Run:
    """What was heard in one run, in order."""

    events: list[Event] = field(default_factory=list)
    verdict: Verdict | None = None
    descriptors: dict[int, list[int]] = field(default_factory=dict)

    def of(self, kind: type, rank: int | None = None) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind) and rank in (None, event.rank)]

    def text(self, rank: int = 0, stream: str = "stdout") -> str:
        return "".join(event.text for event in self.of(Output, rank) if event.stream == stream)

    def values(self) -> list[Any]:
        results = sorted(self.of(Result), key=lambda event: event.rank)
        return [pickle.loads(event.parcel.pickled) for event in results]


@contextmanager
def supervised(
    launcher: Launcher, method: str, nprocs: int, behaviour: str, argument: Any = "", *, fds=(), **options
):
    """Start workers with their job; yields their supervisor and them."""
    with launcher.launch(nprocs, method) as workers:
        workers.post(pickle.dumps((behaviour, argument)), fds)
        supervisor = Supervisor(workers, **options)
        try:
            with interrupts_noted(supervisor.interrupt):
                yield supervisor, workers
        finally:
            supervisor.close()


def perform(
    launcher: Launcher, method: str, nprocs: int, behaviour: str, argument: Any = "", *, fds=(), **options
) -> Run:
    """Run a behaviour to its end."""
    run = Run()
    with supervised(launcher, method, nprocs, behaviour, argument, fds=fds, **options) as (supervisor, _):
        run.events += supervisor
        run.verdict = supervisor.verdict
        run.descriptors = {rank: supervisor.take_descriptors(rank) for rank in range(nprocs)}
    return run


def is_alive(pid: int) -> bool:
    """Tell whether a process runs: a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_gone(pid: int, seconds: float = 5.0) -> None:
    """Wait for the end of any process; fail where it lives on."""
    import select

    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], seconds)[0], f"process {pid} still runs"
    finally:
        os.close(fd)


def when_ready(supervisor: Supervisor, do, *, nprocs: int) -> list[Event]:
    """Iterate over the events; do something once every rank has printed that it is ready."""
    events, waited_for = [], set(range(nprocs))
    for event in supervisor:
        events.append(event)
        if waited_for and isinstance(event, Output) and "ready" in event.text:
            waited_for.discard(event.rank)
            if not waited_for:
                do()
    return events


def interrupt_kernel() -> None:
    """Send this process what the Stop button sends."""
    os.kill(os.getpid(), signal.SIGINT)
