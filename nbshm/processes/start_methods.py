"""The start methods: how each of them makes a process of a `WorkerProcess`.

They are multiprocessing's, with its own popen classes, but for three things. What a child is told to prepare
is only what concerns every worker: the kernel's `__main__` is none of its business, and the kernel's default
start method is not fixed by asking for it. The forkserver is nbshm's own. And the processes are no *children*
in multiprocessing's books: `active_children()` and the wait at the kernel's exit are for the user's own.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import shutil
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from multiprocessing import (
    context,
    forkserver,
    popen_fork,
    popen_forkserver,
    popen_spawn_posix,
    process,
    reduction,
    resource_tracker,
    spawn,
    util,
)
from typing import Any, Protocol

from nbshm.import_path import import_path
from nbshm.processes.generations import Generation
from nbshm.processes.kernel_signals import interrupts_blocked
from nbshm.processes.servers import Server
from nbshm.processes.trackers import ensure_tracker
from nbshm.processes.workers import Popen
from nbshm.rank_forks import forking_a_rank
from nbshm.wire.readiness import wait_readable
from nbshm.worker.life import ForkedWorkerProcess, WorkerProcess

_HASH_SEED = "PYTHONHASHSEED"


class Method(Protocol):
    """One way to start a process."""

    def starting(self) -> AbstractContextManager[None]:
        """Return the state in which this process has to be while it starts workers."""

    def start(self, connection: socket.socket, work: str) -> Popen:
        """Start a worker; it has SIGINT blocked until it leads a process group of its own."""


class ForkserverMethod:
    """Fork the worker from a server that has imported what workers need."""

    def __init__(self, server: Server | Generation) -> None:
        self._server = server

    def starting(self) -> AbstractContextManager[None]:
        """Return nothing special: the server has interrupts blocked, and to wait for it may take long."""
        return contextlib.nullcontext()

    def start(self, connection: socket.socket, work: str) -> Popen:
        """Ask the server for a process."""
        return _ForkserverPopen(WorkerProcess(connection, work), self._server)


class SpawnMethod:
    """Start a new interpreter for the worker; all of them hash strings alike, as those of a forkserver do."""

    def __init__(self) -> None:
        self._hash_seed = secrets.randbelow(1 << 32)

    def starting(self) -> AbstractContextManager[None]:
        """Return a state with interrupts blocked, which is inherited."""
        ensure_tracker()  # it unblocks SIGINT behind it, so it comes first
        return interrupts_blocked()

    def start(self, connection: socket.socket, work: str) -> Popen:
        """Start the interpreter."""
        return _SpawnPopen(WorkerProcess(connection, work), self._hash_seed)


class ForkMethod:
    """Fork the worker from the kernel, with all that it has in memory."""

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """Block interrupts, which is inherited, and a warning.

        Python 3.12 warns that a kernel has threads; whoever asks for fork has been told what may hang.
        """
        with interrupts_blocked(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*multi-threaded")
            yield

    def start(self, connection: socket.socket, work: str) -> Popen:
        """Fork."""
        with forking_a_rank():
            return popen_fork.Popen(ForkedWorkerProcess(connection, work))


class _ForkserverPopen(popen_forkserver.Popen):
    """Like its base, with another server and other preparation."""

    _fds: list[int]

    def __init__(self, worker: WorkerProcess, server: Server | Generation) -> None:
        # The base's would flush the kernel's streams first, which waits for another thread; only a process
        # that is forked from this one has what they hold.
        self._fds = []
        self._pid: int | None = None
        self.returncode = None
        self._server = server
        self._launch(worker)

    def _launch(self, process_obj: WorkerProcess) -> None:
        data = _pickled(process_obj, self)
        child = self._server.connect(self._fds)
        self.sentinel = child.status
        self.finalizer = _closing(self, child.status, child.data, child.done)
        with open(child.data, "wb") as to_child:  # noqa: PTH123  # a descriptor, not a path
            to_child.write(data)

    @property
    def pid(self) -> int:  # type: ignore[override]  # it is known later than the base knows it
        """The process id, which the server tells when it has forked; until then it is waited for.

        `functools.cached_property` has a lock for its class before Python 3.12: all would wait for one.
        """
        if self._pid is None:
            self._pid = int(forkserver.read_signed(self.sentinel))
        return self._pid

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        """Return the exit code; None also where the server was killed, who alone knows it.

        The base takes that for an exit code of 255, which the process may as well have chosen.
        """
        if self.returncode is None and wait_readable(self.sentinel, 0 if flag == os.WNOHANG else None):
            with contextlib.suppress(OSError, EOFError):
                self.returncode = int(forkserver.read_signed(self.sentinel))
        return self.returncode


class _SpawnPopen(popen_spawn_posix.Popen):
    """Like its base, with other preparation, and a seed for the hashes of strings."""

    _fds: list[int]

    def __init__(self, worker: WorkerProcess, hash_seed: int) -> None:
        self._hash_seed = hash_seed
        super().__init__(worker)

    def _launch(self, process_obj: WorkerProcess) -> None:
        data = _pickled(process_obj, self)
        self.sentinel, child_w = os.pipe()
        child_r, write_end = os.pipe()
        self.finalizer = _closing(self, self.sentinel, write_end)
        try:
            self.pid = _spawn(child_r, [*self._fds, child_w], self._hash_seed)
            with open(write_end, "wb", closefd=False) as to_child:  # a descriptor, not a path
                to_child.write(data)
        finally:
            for fd in (child_r, child_w, write_end):
                os.close(fd)


def _spawn(pipe: int, fds: list[int], hash_seed: int) -> int:
    """Start an interpreter that reads from the pipe what it is to do, and keeps the descriptors."""
    tracker: Any = resource_tracker.getfd()
    command = spawn.get_command_line(tracker_fd=tracker, pipe_handle=pipe)
    command = [*_hashing_alike(hash_seed), *command]
    return util.spawnv_passfds(os.fsencode(command[0]), command, [*fds, tracker, pipe])


def _hashing_alike(seed: int) -> list[str]:
    """Return the command that a worker's interpreter is started through, unless the person has set a seed.

    The order of a set of strings is to be the same in all ranks, and only the environment that an interpreter
    starts with can tell it the seed. The kernel's own would be seen by other threads, and by their children;
    the worker's is made the notebook's before anything of the notebook runs there.
    """
    env = shutil.which("env")  # a container with little more than Python may have none
    if env is None or os.environ.get(_HASH_SEED, "random") != "random":
        return []
    return [env, f"{_HASH_SEED}={seed}"]


def _closing(
    popen: Any, sentinel: int, write_end: int, then: Callable[[], None] = lambda: None
) -> util.Finalize:
    """Return what closes the popen's descriptors; until then the child's `parent_process()` counts as alive.

    The child takes the end of the pipe that it was started through for its parent's end.
    """
    kept = os.dup(write_end)

    def close() -> None:
        os.close(sentinel)
        os.close(kept)
        then()

    return util.Finalize(popen, close)


def _pickled(worker: WorkerProcess, popen: Any) -> bytes:
    """Pickle what `multiprocessing.spawn` reads in the child: what to prepare, then the process object."""
    stream = io.BytesIO()
    context.set_spawning_popen(popen)
    try:
        reduction.dump(_preparation(worker.name), stream)
        reduction.dump(worker, stream)
    finally:
        context.set_spawning_popen(None)
    return stream.getvalue()


def _preparation(name: str) -> dict[str, Any]:
    """Return what `multiprocessing.spawn.prepare` is to do in a worker, before anything is imported there.

    What may be different for each run travels with the job.
    """
    return {
        "name": name,
        "sys_path": import_path(),
        "orig_dir": process.ORIGINAL_DIR,  # type: ignore[attr-defined]  # typeshed leaves it out
    }
