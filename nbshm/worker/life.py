"""A worker's life: set up, wait for a job, work, end.

A worker is told who it is by the first message on its socket and what to do by the second; it may stand ready
for the first as long as the kernel likes. What goes wrong before the work begins is told as an event
too.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess, current_process
from typing import TypeAlias, TypeVar

from nbshm.events import Event, Failed, Interrupted, Note
from nbshm.failures.tracebacks import report_exception
from nbshm.wire.messages import Setup
from nbshm.wire.named import resolve
from nbshm.wire.readiness import wait_readable
from nbshm.wire.receiving import Frame
from nbshm.wire.temporary import put_files_in
from nbshm.wire.transport import Channel
from nbshm.worker import lifeline, standard_streams
from nbshm.worker.kernel_interrupts import KernelInterrupts
from nbshm.worker.leaving import leave_kernel
from nbshm.worker.trackers import keep_trackers_apart
from nbshm.worker.whereabouts import Whereabouts

Message = TypeVar("Message")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A worker's place in its run: who it is, and how it talks to the kernel.

    A child that it forks has a copy of it, and no voice: what that says goes nowhere.
    """

    rank: int
    nprocs: int
    channel: Channel
    interrupts: KernelInterrupts
    whereabouts: Whereabouts
    _process: int = field(default_factory=os.getpid)

    def is_heard(self) -> bool:
        """Tell whether this process is the worker itself: a child that it forked has no way to the kernel."""
        return os.getpid() == self._process

    def say(self, event: Event, fds: Sequence[int] = ()) -> None:
        """Send an event, and descriptors beside it, whole: an interrupt waits until it has gone."""
        if not self.is_heard():
            return
        payload = pickle.dumps(event, protocol=5)
        with self.interrupts.held():
            try:
                self.channel.send(payload, fds)
            except BrokenPipeError:
                self.whereabouts.note_unheard()
                raise

    def tell(self, text: str) -> None:
        """Say something to the person in a line."""
        self.say(Note(rank=self.rank, text=text))

    def mention(self, event: Event) -> None:
        """Send an event from a thread that no interrupt hits; where the kernel has gone, nobody hears it."""
        if not self.is_heard():
            return
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.channel.send(pickle.dumps(event, protocol=5))

    def wait_for(self, kind: type[Message]) -> Message:
        """Wait for a message from the kernel, past others; an interrupt ends the wait.

        Raises
        ------
        EOFError
            The kernel has gone.

        """
        while True:
            message = pickle.loads(self._wait_for_frame().payload)
            if isinstance(message, kind):
                return message

    def wait_for_job(self) -> Frame | None:
        """Wait for the job; None where the kernel has gone or wants nothing any more."""
        with contextlib.suppress(EOFError):
            return self._wait_for_frame()
        return None

    def _wait_for_frame(self) -> Frame:
        while not self.channel.ended:
            wait_readable(self.channel.fileno())
            with self.interrupts.held():
                frame = self.channel.next_frame()
            if frame is not None:
                return frame
        raise EOFError("the kernel has gone")


Work: TypeAlias = Callable[[bytearray, list[int], Seat], int]
"""What a worker does with a job, its descriptors (which it owns) and its seat; returns the exit code."""


class WorkerProcess(BaseProcess):
    """The process object that multiprocessing carries into a worker and starts there."""

    _start_method = None  # in the worker, the default start method stays what it is in the notebook

    def __init__(self, connection: socket.socket, work: str) -> None:
        super().__init__(name="nbshm-worker")
        self._connection = connection
        self._work = work

    def run(self) -> None:
        """Live the worker's life."""
        main(self._connection, self._work)


class ForkedWorkerProcess(WorkerProcess):
    """A worker that begins as a copy of the kernel."""

    def run(self) -> None:
        """Leave the kernel, then live."""
        leave_kernel()
        super().run()


def main(connection: socket.socket, work: str) -> None:
    """Live, and raise SystemExit with the exit code.

    `work` names the `Work` to do as `package.module:function`.
    """
    _lead_a_group()
    keep_trackers_apart()
    seat = _take_seat(Channel(connection))
    if seat is None:
        sys.exit(0)
    try:
        code = _work(seat, work)
    except KeyboardInterrupt:
        code = _interrupted(seat)
    standard_streams.flush()
    # The code that an interrupt is for has ended; what is left to wait for may be ended on the spot.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _end_threads()
    sys.exit(code)


def _end_threads() -> None:
    """Wait for threads, and let executors end their processes, as the end of a program begins.

    The end of a process of multiprocessing begins with waiting for its own processes. Those of an executor
    that was not shut down (joblib has one) are told to end by what is called here, so it would wait for ever.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001  # multiprocessing calls it too, but last


def _lead_a_group() -> None:
    """Leave the forkserver's or the kernel's process group, and the kernel's ways with signals.

    Nothing can interrupt this: SIGINT is blocked in the thread that starts workers, and so in them.
    """
    os.setpgid(0, 0)
    signal.set_wakeup_fd(-1)  # a forked kernel's event loop
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _take_seat(channel: Channel) -> Seat | None:
    frame = channel.receive()
    if frame is None:
        return None
    setup: Setup = pickle.loads(frame.payload)
    current_process().name = f"nbshm-rank-{setup.rank}"
    put_files_in(setup.directory)
    stdout, stderr, line, page = frame.fds
    lifeline.arm(line)
    standard_streams.redirect(stdout, stderr)
    whereabouts = Whereabouts(page)
    whereabouts.take_faults()
    return Seat(
        rank=setup.rank,
        nprocs=setup.nprocs,
        channel=channel,
        interrupts=KernelInterrupts(),
        whereabouts=whereabouts,
    )


def _work(seat: Seat, work: str) -> int:
    """Wait for the job and do it; what raises is told to the kernel as a failure to be prepared."""
    try:
        seat.interrupts.listen()
        job = seat.wait_for_job()
        if job is None:
            return 0
        do: Work = resolve(work)
        return do(job.payload, job.fds, seat)
    except KeyboardInterrupt as error:
        return _interrupted(seat) if seat.interrupts.arrived() else _failed(seat, error)
    except Exception as error:  # noqa: BLE001  # told as an event
        return _failed(seat, error)


def _interrupted(seat: Seat) -> int:
    return _last_words(seat, Interrupted(rank=seat.rank))


def _failed(seat: Seat, error: BaseException) -> int:
    return _last_words(seat, Failed(rank=seat.rank, report=report_exception(error), preparing=True))


def _last_words(seat: Seat, event: Event) -> int:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # then nobody is there to be told
        seat.say(event)
    return 1
