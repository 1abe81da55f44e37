"""The kernel's handles on the worker processes of a run."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from nbshm.bystanders.sweeper import has_names, members_of, remove_names
from nbshm.closing import Closing
from nbshm.failures.stacks import Dump
from nbshm.machine.proc import waits_for_child
from nbshm.processes.directories import Directory
from nbshm.processes.sweeping import Sweeper
from nbshm.wire.readiness import wait_readable
from nbshm.wire.transport import Channel
from nbshm.wire.whereabouts import (
    DUMP_SIGNAL,
    Question,
    answer,
    ask,
    is_unheard,
    listens,
    read_dump,
    read_place,
)

LOST = 255
"""The exit code where nobody can know it, the forkserver having been killed; multiprocessing's own."""

_PATIENCE = 1.0
"""Seconds that a forkserver has to tell a worker's exit code; it needs less than a thousandth of that."""


class Popen(Protocol):
    """What is used of multiprocessing's popen objects."""

    sentinel: int

    @property
    def pid(self) -> int:
        """The process id; a forkserver's may have to be waited for."""

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit code, None if the process lives on after that many seconds."""

    def close(self) -> None:
        """Close the descriptors that the popen holds."""


class Worker:
    """One worker process: its channel, the pipes that it prints to, and its end."""

    def __init__(
        self, *, rank: int, popen: Popen, channel: Channel, stdout: int, stderr: int, page: int
    ) -> None:
        self.rank = rank
        self.pid = popen.pid
        self.channel = channel
        self.stdout = stdout
        self.stderr = stderr
        self.born = time.monotonic()
        self._popen = popen
        self._page = page
        self._pidfd = _open_pidfd(popen.pid)
        self._exitcode: int | None = None
        self._closed = False
        self.is_lost = False
        """Whether the process has ended, and nobody knows its exit code."""
        self.killed_children: set[int] = set()  # where these may have left names in /dev/shm

    def __repr__(self) -> str:
        code = self.exitcode
        return f"<Worker rank={self.rank} pid={self.pid} {'alive' if code is None else f'exitcode={code}'}>"

    @property
    def sentinel(self) -> int:
        """A descriptor that is ready to be read when the process has ended.

        A pidfd where there is one: multiprocessing's pipe stays open as long as a child of a spawned worker
        holds its other end, and closes when the forkserver is killed although the worker lives on.
        """
        return self._popen.sentinel if self._pidfd is None else self._pidfd

    @property
    def exitcode(self) -> int | None:
        """The exit code as in multiprocessing (negative for a signal); None while the process lives.

        When it has ended, its own children, what is left of its process group, are killed first: the group's
        number is surely still its own as long as the exit code has not been taken.
        """
        if self._exitcode is None and not self._closed and wait_readable(self.sentinel, 0):
            self.kill_group()
            code = self._popen.wait(_PATIENCE)
            self.is_lost = code is None
            self._exitcode = LOST if code is None else code
        return self._exitcode

    @property
    def place(self) -> str | None:
        """Where in the notebook the worker was when it last looked: `In [7] line 5`."""
        return read_place(self._page)

    @property
    def is_unheard(self) -> bool:
        """Whether the worker has found its channel closed, though nobody has closed it here."""
        return is_unheard(self._page)

    def ask(self) -> Question:
        """Ask for the stacks of its threads, which its own thread writes down when it next looks."""
        return ask(self._page)

    def answer(self, question: Question) -> Dump | None:
        """Return its answer; None as long as there is none."""
        dump = answer(self._page, question)
        return None if dump is None else replace(dump, in_wait_for_child=waits_for_child(self.pid))

    def demand_stacks(self) -> None:
        """Have the stacks written down by a signal, where no thread of its own gets to it."""
        if listens(self._page):
            self.send_signal(DUMP_SIGNAL)

    def dump_since(self, question: Question) -> Dump | None:
        """Return what has been written down since a question; None where nothing was."""
        return read_dump(self._page, question.start)

    def last_dump(self) -> Dump | None:
        """Return all that has been written down, its end last."""
        return read_dump(self._page)

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, if it still is there."""
        with contextlib.suppress(ProcessLookupError):
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, number)
            elif self.exitcode is None:
                os.kill(self.pid, number)

    def kill_group(self) -> None:
        """Kill the worker's process group, itself included."""
        if has_names():
            self.killed_children |= members_of([self.pid]) - {self.pid}
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill the process if it still lives, and its group; close every descriptor."""
        if self._closed:
            return
        if self.exitcode is None:
            self.send_signal(signal.SIGKILL)
            wait_readable(self.sentinel)
            self.exitcode  # noqa: B018  # takes it, so that no zombie stays
        self._closed = True
        self.channel.close()
        self._popen.close()
        for fd in (self.stdout, self.stderr, self._page, self._pidfd):
            if fd is not None:
                os.close(fd)


class Workers(Sequence[Worker], Closing):
    """The workers of one run, by rank; leaving the `with` block ends whatever is left and clears it away."""

    def __init__(self, sweeper: Sweeper) -> None:
        self._workers: list[Worker] = []
        self._sweeper = sweeper
        self._when_closed = contextlib.ExitStack()
        self.directory = Directory(sweeper)

    def __getitem__(self, rank: int) -> Worker:  # type: ignore[override]  # nobody slices ranks
        return self._workers[rank]

    def __len__(self) -> int:
        return len(self._workers)

    def __iter__(self) -> Iterator[Worker]:
        return iter(self._workers)

    def add(self, worker: Worker) -> None:
        """Take a worker in that has just been started."""
        self._workers.append(worker)

    def be_swept(self) -> None:
        """Have the process groups, which workers are alone in until their job, ended with the kernel."""
        self._sweeper.begin_groups(*(worker.pid for worker in self))

    def post(self, payload: bytes | bytearray | memoryview, fds: Sequence[int] = ()) -> None:
        """Queue the same message for every worker and send what fits; supervision sends the rest.

        Payload and descriptors must stay as they are until each worker has told that it has `Started`.
        """
        for worker in self:
            worker.channel.post(payload, fds)
        for worker in self:
            worker.channel.flush()

    def when_closed(self, action: Callable[[], object]) -> None:
        """Have something done when all workers have ended."""
        self._when_closed.callback(action)

    def close(self) -> None:
        """End every worker that still lives, at once, and close what belongs to them."""
        for worker in self:
            worker.send_signal(signal.SIGKILL)
        for worker in self:
            worker.close()
        self._sweeper.end_groups(*(worker.pid for worker in self))
        killed = {pid for worker in self for pid in worker.killed_children}
        if any(worker.exitcode for worker in self):
            # What they have put on a queue by name is lost with the run; torch's managers may be gone, too.
            killed.update(worker.pid for worker in self)
        if killed:
            remove_names(killed)
        self.directory.close()
        self._when_closed.close()


def _open_pidfd(pid: int) -> int | None:
    """Open a descriptor for the process; None before Linux 5.3, where forbidden, or if it is too late."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
