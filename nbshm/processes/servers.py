"""nbshm's own forkserver: started ahead, kept out of the way of interrupts, renewed when it has to be.

The standard library's forkserver is a singleton that belongs to the user's own code too; this is another
instance of its class. Like any, it ends when nobody holds the write end of its *alive* pipe any more: each
worker that was started by it holds one, and the kernel as long as it has to know how its workers end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import forkserver
from typing import Any

from nbshm.default_start_method import start_method_kept
from nbshm.processes.directories import Directory
from nbshm.processes.readiness import wait_readable
from nbshm.processes.sweeping import Sweeper
from nbshm.processes.temporary import files_in
from nbshm.processes.trackers import ensure_tracker


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A process asked for: where its pid and its exit code are read, where it is written to.

    `done` is to be called once, when nothing more has to be known of it.
    """

    status: int
    data: int
    done: Callable[[], None]


class Generation:
    """One forkserver, from its start on; `preload` are the modules that it imports."""

    def __init__(self, preload: Sequence[str]) -> None:
        self.preload = tuple(preload)
        self._forkserver = _StartedOnce()
        self._forkserver.set_forkserver_preload(list(preload))
        self._directory: Directory | None = None
        self._counting = threading.Lock()
        self._children = 0
        self._retired = False

    @property
    def pid(self) -> int | None:
        """The process id, None where it has not been started."""
        return _pid(self._forkserver)

    def start(self, sweeper: Sweeper) -> None:
        """Start the process; what it imports is not waited for."""
        ensure_tracker()  # it unblocks SIGINT behind it, so it comes first
        self._directory = Directory(sweeper)
        with interrupts_blocked(), start_method_kept(), files_in(self._directory.path), _main_described():
            self._forkserver.ensure_running()
        if self.pid is not None:
            sweeper.begin_groups(self.pid)

    def connect(self, fds: list[int]) -> Child:
        """Have a process forked that holds `fds`."""
        status, data = self._forkserver.connect_to_new_process(fds)
        with self._counting:
            self._children += 1
        return Child(status=status, data=data, done=self._done)

    def retire(self) -> None:
        """Let the process end when all that has to be known of its children is known.

        It would end with its last child, and may do so before it has told that child's exit code.
        """
        with self._counting:
            self._retired = True
            alone = not self._children
        if alone:
            self.let_go()

    def _done(self) -> None:
        with self._counting:
            self._children -= 1
            alone = self._retired and not self._children
        if alone:
            self.let_go()

    def let_go(self) -> None:
        """Let the process end with its last child."""
        let_go(self._forkserver)
        if self._directory is not None:  # where it listens, to nobody any more
            self._directory.close()
            self._directory = None

    def forget(self) -> None:
        """Let go in a forked child of the kernel: its life should not prolong the process's."""
        let_go(self._forkserver)


class Server:
    """The forkserver that new workers come from, one to follow it, and older ones that still have workers."""

    def __init__(self, sweeper: Sweeper, *, preload: Sequence[str]) -> None:
        self._sweeper = sweeper
        self._changing = threading.RLock()
        self._retired: dict[int, Generation] = {}
        self._current = Generation(preload)
        self._next: Generation | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the server that is in use, None where none has been started."""
        return self._current.pid

    @property
    def next(self) -> Generation | None:
        """The server that is to follow, if one has been started."""
        return self._next

    def ensure_started(self) -> None:
        """Start the server if none runs; what it imports is not waited for."""
        with self._changing:
            self._bury()
            if self.pid is None:
                self._current.start(self._sweeper)

    def connect(self, fds: list[int]) -> Child:
        """Have a process forked that holds `fds`."""
        with self._changing:
            self.ensure_started()
            try:
                return self._current.connect(fds)
            except (
                FileNotFoundError,
                ConnectionRefusedError,
            ):  # a cleaner of temporary files takes its socket
                self.renew()
                self.ensure_started()
            return self._current.connect(fds)

    def renew(self) -> None:
        """Let new workers come from a new server; the one in use ends with its last worker."""
        with self._changing:
            self._retire(self._current)
            self._current = Generation(self._current.preload)

    def start_next(self, preload: Sequence[str]) -> None:
        """Start a server that imports these modules too, unless the one in use does; it is not used yet."""
        with self._changing:
            missing = [module for module in preload if module not in self._current.preload]
            if missing and self._next is None:
                self._next = Generation([*self._current.preload, *missing])
                self._next.start(self._sweeper)

    def use_next(self) -> None:
        """Let new workers come from the server that was to follow."""
        with self._changing:
            if self._next is not None:
                self._retire(self._current)
                self._current, self._next = self._next, None

    def see_off(self, seconds: float) -> None:
        """Wait, so long at most, for the ends of servers that have no workers: no zombie should stay."""
        for pid in list(self._retired):
            with contextlib.suppress(OSError):  # it has been waited for; or a Linux before 5.3
                fd = os.pidfd_open(pid)
                wait_readable(fd, seconds)
                os.close(fd)
        with self._changing:
            self._bury()

    def drop_next(self) -> None:
        """End the server that was to follow."""
        with self._changing:
            coming, self._next = self._next, None
            if coming is not None and coming.pid is not None:
                self._end(coming.pid, coming)

    def close(self) -> None:
        """End all servers at once, and everything that still is in their process groups."""
        with self._changing:
            self.drop_next()
            self.renew()
            for pid, generation in self._retired.items():
                self._end(pid, generation)
            self._retired.clear()

    def forget(self) -> None:
        """Let go in a forked child of the kernel: its life should not prolong the servers'."""
        for generation in (self._current, self._next, *self._retired.values()):
            if generation is not None:
                generation.forget()

    def _retire(self, generation: Generation) -> None:
        if generation.pid is not None:
            self._retired[generation.pid] = generation
        generation.retire()

    def _end(self, pid: int, generation: Generation) -> None:
        generation.let_go()
        _kill(pid)
        _has_ended(pid, 0)
        self._sweeper.end_groups(pid)

    def _bury(self) -> None:
        """Take leave of servers that have ended, the one in use too: something may have killed it."""
        if self.pid is not None and _has_ended(self.pid, os.WNOHANG):
            self.renew()
        for pid in [pid for pid in self._retired if _has_ended(pid, os.WNOHANG)]:
            self._retired.pop(pid).let_go()
            self._sweeper.end_groups(pid)


class _StartedOnce(forkserver.ForkServer):
    """A forkserver that is not looked after for each process anew: `Server` knows whether it lives."""

    def ensure_running(self) -> None:
        """Start it, unless it has been started."""
        if _pid(self) is None:
            super().ensure_running()


@contextlib.contextmanager
def _main_described() -> Iterator[None]:
    """Let multiprocessing look at the notebook's `__main__`, which has no `__spec__` after `%reset`."""
    main = vars(sys.modules["__main__"])
    missing = "__spec__" not in main
    main.setdefault("__spec__", None)
    try:
        yield
    finally:
        if missing:
            del main["__spec__"]


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
