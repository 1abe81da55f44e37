"""One forkserver of nbshm's own, from its start to its end.

The standard library's forkserver is a singleton that belongs to the user's own code too; this is another
instance of its class. Like any, it ends when nobody holds the write end of its *alive* pipe any more: each
worker that was started by it holds one, and the kernel as long as it has to know how its workers end.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import forkserver, util

from nbshm.default_start_method import start_method_kept
from nbshm.own_code import OWN_PLACE
from nbshm.processes.directories import Directory
from nbshm.processes.kernel_signals import interrupts_blocked
from nbshm.processes.sweeping import Sweeper
from nbshm.processes.trackers import ensure_tracker
from nbshm.replacing import replaced
from nbshm.wire.forkservers import let_go, pid_of
from nbshm.wire.temporary import files_in


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
        return pid_of(self._forkserver)

    def start(self, sweeper: Sweeper) -> None:
        """Start the process; what it imports is not waited for."""
        ensure_tracker()  # it unblocks SIGINT behind it, so it comes first
        self._directory = Directory(sweeper)
        with (
            interrupts_blocked(),
            start_method_kept(),
            files_in(self._directory.path),
            _main_described(),
            _beginning_with(_OWN_PATH),
        ):
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


class _StartedOnce(forkserver.ForkServer):
    """A forkserver that is not looked after for each process anew: `Server` knows whether it lives."""

    def ensure_running(self) -> None:
        """Start it, unless it has been started."""
        if pid_of(self) is None:
            super().ensure_running()


_OWN_PATH = (
    "import sys; "
    "sys.path[:] = [entry for entry in sys.path if entry]; "
    f"{OWN_PLACE!r} in sys.path or sys.path.append({OWN_PLACE!r}); "
)
"""The path of a server before the standard library imports anything there.

An interpreter with a program looks in the working directory first, and takes a `random.py` of the person's
for the standard library's. And nbshm itself may be on the notebook's path alone. The option -P is for the
former only, from Python 3.11 on.
"""


@contextlib.contextmanager
def _beginning_with(statements: str) -> Iterator[None]:
    """Let programs that this thread starts interpreters with inside the block begin with these statements.

    The standard library builds a forkserver's command and starts it in one go.
    """
    start, thread = util.spawnv_passfds, threading.get_ident()

    def spawnv_passfds(path: bytes, args: Sequence[str], passfds: Sequence[int]) -> int:
        command = list(args)
        if threading.get_ident() == thread:
            program = command.index("-c") + 1
            command[program] = statements + command[program]
        return start(path, command, passfds)

    with replaced(util, "spawnv_passfds", spawnv_passfds):
        yield


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
