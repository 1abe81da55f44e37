"""A process that has been asked for, from the moment on which it is told who it is to be."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
from multiprocessing import util

from nbshm.machine.proc import is_stopped
from nbshm.processes.start_methods import Method
from nbshm.processes.workers import Worker
from nbshm.wire.messages import Setup
from nbshm.wire.readiness import wait_readable
from nbshm.wire.transport import Channel
from nbshm.wire.whereabouts import new_page


class Newcomer:
    """A process that waits on its socket to be told who it is; `server` is the forkserver that it comes from.

    What is not made a `Worker` has to be closed: the process ends by itself then.
    """

    def __init__(self, method: Method, work: str, *, server: int | None = None) -> None:
        self.server = server
        self._held = contextlib.ExitStack()
        ours, theirs = socket.socketpair()
        self._held.callback(ours.close)
        try:
            with theirs:
                self._popen = method.start(theirs, work)
        except BaseException:
            self.close()
            raise
        self._held.callback(self._popen.close)
        util.register_after_fork(ours, socket.socket.close)  # a forked child has no business with it
        self._channel = Channel(ours)
        self._rank, self._stdout, self._stderr, self._page = -1, -1, -1, -1

    @property
    def lives(self) -> bool:
        """Whether the process is there, or will be: it says nothing, and its socket ends with it."""
        return not wait_readable(self._channel.fileno(), 0)

    @property
    def is_stopped(self) -> bool:
        """Whether a signal has stopped the process: it would not do anything until another one comes."""
        try:
            return is_stopped(self._popen.pid)
        except EOFError:  # its forkserver has gone before it was made
            return False

    def kill(self) -> None:
        """Kill the process, which lives."""
        os.kill(self._popen.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until the process has been made; EOFError where its forkserver has gone before."""
        self._popen.pid  # noqa: B018  # it is read where the forkserver tells it

    def settle(self, setup: Setup, lifeline: int) -> None:
        """Tell the process who it is, without waiting for it."""
        self._rank = setup.rank
        with contextlib.ExitStack() as worker_ends:
            self._stdout, stdout = self._pipe(worker_ends)
            self._stderr, stderr = self._pipe(worker_ends)
            self._page = new_page()
            self._held.callback(os.close, self._page)
            with contextlib.suppress(BrokenPipeError):  # it has died already; supervision will tell
                self._channel.send(pickle.dumps(setup), [stdout, stderr, lifeline, self._page])

    def worker(self) -> Worker:
        """Return the settled process as the worker that it is now; waits until it has been made."""
        worker = Worker(
            rank=self._rank,
            popen=self._popen,
            channel=self._channel,
            stdout=self._stdout,
            stderr=self._stderr,
            page=self._page,
        )
        self._held.pop_all()
        return worker

    def close(self) -> None:
        """Let go of the process: it hears that nobody wants it."""
        self._held.close()

    def forget(self) -> None:
        """Close the socket in a forked child of the kernel, lest the process waits for the child too."""
        self._channel.close()

    def _pipe(self, worker_ends: contextlib.ExitStack) -> tuple[int, int]:
        read_end, write_end = os.pipe()
        self._held.callback(os.close, read_end)
        worker_ends.callback(os.close, write_end)
        return read_end, write_end
