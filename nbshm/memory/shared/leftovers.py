"""Shared memory with a name that dead processes have left in /dev/shm.

torch names its files after the process that made them. They are left over where that one is gone and no other
has them open; the pid alone doesn't tell, because a container may share /dev/shm and not its processes. The
files of multiprocessing (`psm_...`) don't say whose they are, and are not looked at.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nbshm.machine.shared_memory import DIRECTORY

_NAME = re.compile(r"torch_(?P<pid>\d+)_\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """A file that a dead process of this user has left."""

    path: Path
    pid: int
    nbytes: int


def leftovers(directory: Path | None = None) -> list[Leftover]:
    """Return the files of this user's dead processes that nobody has open."""
    found = []
    for path, pid in _candidates(directory or Path(DIRECTORY)):
        with contextlib.suppress(OSError), _alone_with(path) as status:
            found.append(Leftover(path=path, pid=pid, nbytes=status.st_size))
    return found


def remove(left: Leftover) -> bool:
    """Remove a file if it is left over still; tell whether it was."""
    with contextlib.suppress(OSError), _alone_with(left.path):
        left.path.unlink()
        return True
    return False


def _candidates(directory: Path) -> Iterator[tuple[Path, int]]:
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            match = _NAME.fullmatch(entry.name)
            if match is not None and not _is_alive(int(match["pid"])):
                yield Path(entry.path), int(match["pid"])


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@contextlib.contextmanager
def _alone_with(path: Path) -> Iterator[os.stat_result]:
    """Hold a file of this user's that no other process has open or mapped; OSError if that is not so.

    The system grants a lease for writing to nobody else, also across containers.
    """
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        if status.st_uid != os.getuid():
            raise PermissionError(path)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield status
    finally:
        os.close(fd)
