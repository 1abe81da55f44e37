"""The kernel's side of the sweeper: a process that survives the kernel and clears away what it leaves."""

from __future__ import annotations

import os
import subprocess
import threading

from nbshm.processes.bystanders import start_bystander


class Sweeper:
    """Knows the process groups and directories that must not outlive the kernel.

    The process is started when there is first something to tell, without waiting for it, and again if
    somebody has ended it. It clears away what is left when it is closed, and when the kernel is gone, however
    that came about.
    """

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._telling = threading.RLock()

    def begin_groups(self, *groups: int) -> None:
        """Tell of process groups that belong to workers."""
        self._begin(*(f"group {group}" for group in groups))

    def end_groups(self, *groups: int) -> None:
        """Tell that process groups have been ended."""
        self._end(*(f"group {group}" for group in groups))

    def begin_directory(self, path: str | os.PathLike[str]) -> None:
        """Tell of a directory that is to be removed in the end."""
        self._begin(f"directory {os.fspath(path)}")

    def end_directory(self, path: str | os.PathLike[str]) -> None:
        """Tell that a directory has been removed."""
        self._end(f"directory {os.fspath(path)}")

    def begin_file(self, path: str | os.PathLike[str]) -> None:
        """Tell of a file that is to be removed if it is there when the kernel has gone; not by `close`."""
        self._begin(f"file {os.fspath(path)}")

    def begin_names(self, process: int) -> None:
        """Tell of a process whose names of shared memory go when the kernel has gone; not by `close`."""
        self._begin(f"names {process}")

    def start(self) -> None:
        """Start the process if there is none."""
        with self._telling:
            if self._process is None or self._process.poll() is not None:
                self._restart()

    def close(self) -> None:
        """Have groups and directories cleared away that were not ended, and wait for that.

        Files and names are of objects that live on in the notebook, and that remove them themselves.
        """
        with self._telling:
            if self._process is not None:
                self._end(*(what for what in self._held if what.startswith(("file ", "names "))))
            self._drop()

    def forget(self) -> None:
        """Let go of the pipe in a forked child of the kernel: it belongs to the kernel alone."""
        self._release()

    def _begin(self, *what: str) -> None:
        with self._telling:
            self._held.update(what)
            self._tell("".join(f"+{each}\n" for each in what))

    def _end(self, *what: str) -> None:
        with self._telling:
            self._held.difference_update(what)
            self._tell("".join(f"-{each}\n" for each in what))

    def _tell(self, lines: str) -> None:
        """Write all in one go: each write wakes the process."""
        if self._process is None:
            self._restart()
            return
        if self._pipe < 0:  # a forked child has nothing to tell
            return
        try:
            os.write(self._pipe, _encoded(lines))
        except BrokenPipeError:
            self._restart()

    def _restart(self) -> None:
        """Start a process and tell it all: also one that replaces another knows everything that is held."""
        self._drop()
        self._process, self._pipe = start_bystander("sweeper.py")
        os.write(self._pipe, _encoded("".join(f"+{what}\n" for what in sorted(self._held))))

    def _drop(self) -> None:
        self._release()
        process, self._process = self._process, None
        if process is not None:
            process.wait()

    def _release(self) -> None:
        pipe, self._pipe = self._pipe, -1
        if pipe >= 0:
            os.close(pipe)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
