"""Directories for the files that multiprocessing makes: those of workers go when their run does.

Sockets of queues, loaders and managers lie in a directory that each process makes for itself and removes when
it ends in order; a killed one leaves it. The name is part of a process's configuration, which children get.
"""

from __future__ import annotations

import os
import shutil
import tempfile

from nbshm.errors import ParallelError
from nbshm.processes.sweeping import Sweeper

_PREFIX = "nbshm-"
_LONGEST = 107 - len("/nbshm-12345678/listener-12345678")  # what the path of a socket in one may have
_SHORT = "/tmp"  # noqa: S108  # a private directory is made in it


class Directory:
    """A private directory, which does not outlive the kernel; `close` removes it with all that is in it."""

    def __init__(self, sweeper: Sweeper) -> None:
        self.path = _new_directory()
        self._sweeper = sweeper
        sweeper.begin_directory(self.path)

    def close(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._sweeper.end_directory(self.path)


def _new_directory() -> str:
    place = _place()
    try:
        return tempfile.mkdtemp(prefix=_PREFIX, dir=place)
    except OSError as error:
        raise ParallelError(
            f"workers need a temporary directory, and none can be made in {place}: "
            f"{error.strerror}. Make room for it there, or restart the kernel with another TMPDIR."
        ) from error


def _place() -> str:
    """Return where temporary files go; /tmp where sockets would have too long a path, as Python 3.14 does."""
    place = tempfile.gettempdir()
    return _SHORT if len(os.fsencode(place)) > _LONGEST else place
