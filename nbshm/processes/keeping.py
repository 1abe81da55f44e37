"""The kernel's side of the keeper: a process that keeps descriptors on their way through queues."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading

from nbshm.errors import ParallelError
from nbshm.processes.bystanders import start_bystander
from nbshm.processes.directories import Directory
from nbshm.processes.sweeping import Sweeper


class KeeperProcess:
    """Starts the process when it may first be needed, without waiting for it, and ends it.

    It ends with the kernel, however that comes about: only the kernel holds the other end of its standard
    input.
    """

    def __init__(self, sweeper: Sweeper) -> None:
        self._sweeper = sweeper
        self._starting = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._directory: Directory | None = None
        self._life = -1
        self._address: str | None = None
        self._is_ours = True

    @property
    def address(self) -> str | None:
        """Where the process can be spoken to, also before it listens; None where it has not been started."""
        return self._address

    def ensure_started(self) -> str | None:
        """Start the process if there is none, also if somebody has ended it; return its address.

        None where none can be started: then queues work as they do without it. A forked child of the kernel
        starts none: the kernel's serves it too.
        """
        with self._starting:
            if self._is_ours and not self._is_there():
                self.close()
                with contextlib.suppress(OSError, ParallelError):
                    self._start()
            return self._address

    def close(self) -> None:
        """End the process, and forget what it kept."""
        with self._starting:
            self._end_its_life()
            process, self._process = self._process, None
            if process is not None:
                process.wait()
            directory, self._directory = self._directory, None
            if directory is not None:
                directory.close()

    def forget(self) -> None:
        """Let go in a forked child of the kernel: its life should not prolong the keeper's."""
        self._is_ours = False
        self._end_its_life()

    def _end_its_life(self) -> None:
        life, self._life = self._life, -1
        if life >= 0:
            os.close(life)

    def _is_there(self) -> bool:
        """Tell whether it lives, and can be spoken to: a cleaner of temporary files takes its socket."""
        lives = self._process is not None and self._process.poll() is None
        return lives and self._address is not None and os.path.exists(self._address)  # noqa: PTH110  # as below

    def _start(self) -> None:
        with contextlib.ExitStack() as undo:
            directory = Directory(self._sweeper)
            undo.callback(directory.close)
            address = os.path.join(directory.path, "keeper")  # noqa: PTH118  # sockets take strings
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
                door.bind(address)
                number = door.fileno()
                self._process, self._life = start_bystander("keeper.py", str(number), pass_fds=[number])
            self._directory, self._address = directory, address
            undo.pop_all()
