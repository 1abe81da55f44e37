"""nbshm's own forkserver: started ahead, renewed when it must be, followed by one that has imported more."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Sequence

from nbshm.processes.generations import Child, Generation
from nbshm.processes.sweeping import Sweeper
from nbshm.wire.readiness import wait_readable


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
