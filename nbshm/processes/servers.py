"""nbshm's own forkserver: started ahead, kept out of the way of interrupts, renewed when it has to be.

The standard library's forkserver is a singleton that belongs to the user's own code too; this is another
instance of its class. Like any, it ends when nobody holds the write end of its *alive* pipe any more: the
kernel and each worker that was started by it hold one, so a server that was renewed goes with its last
worker.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from multiprocessing import forkserver
from typing import Any

from nbshm.default_start_method import start_method_kept
from nbshm.processes.directories import Directory
from nbshm.processes.sweeping import Sweeper
from nbshm.processes.temporary import files_in
from nbshm.processes.trackers import ensure_tracker


class Server:
    """The forkserver that the next workers come from, and older ones that still have workers."""

    def __init__(self, sweeper: Sweeper, *, preload: Sequence[str]) -> None:
        self._sweeper = sweeper
        self._preload = list(preload)
        self._changing = threading.RLock()
        self._retired: set[int] = set()
        self._current = self._new()
        self._directory: Directory | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the server that is in use, None where none has been started."""
        return _pid(self._current)

    def ensure_started(self) -> None:
        """Start the server if none runs; what it imports is not waited for."""
        with self._changing:
            self._bury()
            if self.pid is None:
                self._start()

    def connect(self, fds: list[int]) -> tuple[int, int]:
        """Have a process forked that holds `fds`; return where its pid is read and where it is written to."""
        self.ensure_started()
        try:
            return self._ask_for_process(fds)
        except (FileNotFoundError, ConnectionRefusedError):  # a cleaner of temporary files takes its socket
            self.renew()
            self.ensure_started()
        return self._ask_for_process(fds)

    def renew(self) -> None:
        """Let new workers come from a new server; the one in use ends with its last worker."""
        with self._changing:
            pid = let_go(self._current)
            if pid is not None:
                self._retired.add(pid)
            self._current = self._new()
            if self._directory is not None:  # where the old one listens, to nobody any more
                self._directory.close()
                self._directory = None

    def close(self) -> None:
        """End all servers at once, and everything that still is in their process groups."""
        with self._changing:
            self.renew()
            for pid in self._retired:
                _kill(pid)
                _has_ended(pid, 0)
                self._sweeper.end_groups(pid)
            self._retired.clear()

    def forget(self) -> None:
        """Let go in a forked child of the kernel: its life should not prolong the server's."""
        let_go(self._current)

    def _ask_for_process(self, fds: list[int]) -> tuple[int, int]:
        status, data = self._current.connect_to_new_process(fds)
        return status, data

    def _new(self) -> forkserver.ForkServer:
        server = _StartedOnce()
        server.set_forkserver_preload(self._preload)
        return server

    def _start(self) -> None:
        ensure_tracker()  # it unblocks SIGINT behind it, so it comes first
        self._directory = Directory(self._sweeper)
        with interrupts_blocked(), start_method_kept(), files_in(self._directory.path):
            self._current.ensure_running()
        if self.pid is not None:
            self._sweeper.begin_groups(self.pid)

    def _bury(self) -> None:
        """Take leave of servers that have ended, the one in use too: something may have killed it."""
        if self.pid is not None and _has_ended(self.pid, os.WNOHANG):
            self.renew()
        for pid in [pid for pid in self._retired if _has_ended(pid, os.WNOHANG)]:
            self._retired.remove(pid)
            self._sweeper.end_groups(pid)


class _StartedOnce(forkserver.ForkServer):
    """A forkserver that is not looked after for each process anew: `Server` knows whether it lives."""

    def ensure_running(self) -> None:
        """Start it, unless it has been started."""
        if _pid(self) is None:
            super().ensure_running()


@contextlib.contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Block SIGINT in this thread: what is started meanwhile is born with it blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pid(server: Any) -> int | None:
    """Return the server's process id, None where it has not been started.

    The standard library keeps it private, and offers nothing to end a server with but a `_stop` that waits as
    long as the server likes. The names are those of Python 3.4 to 3.14.
    """
    pid: int | None = server._forkserver_pid  # noqa: SLF001  # see the docstring
    return pid


def let_go(server: Any) -> int | None:
    """Close the kernel's end of the server's alive pipe; return the process id that has to be waited for."""
    pid = _pid(server)
    if pid is not None:
        os.close(server._forkserver_alive_fd)  # noqa: SLF001  # see `_pid`
        server._forkserver_pid = server._forkserver_alive_fd = None  # noqa: SLF001  # see `_pid`
    return pid


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):  # it leads no group until its preloading has begun
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def _has_ended(pid: int, options: int) -> bool:
    """Take a server's exit status, if it has one; tell whether it has ended.

    Somebody else may have taken it, waiting for any child of the kernel.
    """
    try:
        return os.waitpid(pid, options)[0] == pid
    except ChildProcessError:
        return True
