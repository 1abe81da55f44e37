"""Sweep up when the kernel has gone: a small process that outlives it, run as a file by a bare interpreter.

It reads lines from standard input, whose other end only the kernel holds:

    +group 1234         the process group 1234 belongs to a worker
    -group 1234         it has been ended
    +directory /path    a directory of this kernel's
    -directory /path    it has been removed
    +file /path         a file of this kernel's; it may be gone by the end
    +names 1234         torch may have named memory in /dev/shm in the process 1234

At the end of the input, which is the kernel's own end, it kills the groups, removes the directories and files
that are left, and names that these processes have left in /dev/shm. Nothing but the standard library is
imported: it should cost little and start at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable

_PATIENCE = 1.0  # seconds that a process which was killed may take to be gone
_MOMENT = 0.2  # seconds that its children may take, which are nobody's to wait for


def remains(lines: Iterable[str]) -> dict[str, set[str]]:
    """Return what was begun and not ended, by kind: groups, directories, files, names."""
    left: dict[str, set[str]] = {kind: set() for kind in ("group", "directory", "file", "names")}
    for line in lines:
        kind, _, name = line.rstrip("\n")[1:].partition(" ")
        if line.startswith("+"):
            left[kind].add(name)
        else:
            left[kind].discard(name)
    return left


def sweep(left: dict[str, set[str]]) -> None:
    """Kill process groups, remove directories, files and names; what is not there any more is fine."""
    groups = [int(group) for group in left["group"]]
    members = members_of(groups) if has_names() else set()
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for directory in left["directory"]:
        shutil.rmtree(directory, ignore_errors=True)
    for file in left["file"]:
        with contextlib.suppress(OSError):
            os.unlink(file)  # noqa: PTH108  # pathlib would take as long to import as all of this takes
    processes = {*groups, *members, *(int(process) for process in left["names"])}
    _wait_until_gone(processes)  # until then they may name more
    remove_names(processes)


def remove_names(processes: Iterable[int], directory: str = "/dev/shm") -> None:  # noqa: S108  # torch's choice
    """Remove the names that torch has given to shared memory in processes that are gone.

    torch does so itself, or its manager, as long as neither is killed in the wrong moment. The names begin
    with the number of the process. A container that shares the directory may count its processes alike; so
    what anybody has open or mapped is left alone, once those that were killed have had a moment to be gone.
    """
    beginnings = tuple(f"torch_{process}_" for process in processes)
    limit = time.monotonic() + _MOMENT
    with contextlib.suppress(OSError):
        for entry in os.scandir(directory):
            if entry.name.startswith(beginnings) and entry.stat().st_uid == os.getuid():
                while (in_use := _is_in_use(entry.path)) and time.monotonic() < limit:
                    time.sleep(0.01)
                if not in_use:
                    os.unlink(entry.path)  # noqa: PTH108  # as above


def members_of(groups: Iterable[int]) -> set[int]:
    """Return the processes of process groups; looking through all that there are takes milliseconds."""
    wanted, found = set(groups), set()
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getpgid(int(entry.name)) in wanted:
                    found.add(int(entry.name))
    return found


def has_names(directory: str = "/dev/shm") -> bool:  # noqa: S108  # torch's choice
    """Tell whether there is shared memory with a name of torch's, of whatever process."""
    with contextlib.suppress(OSError):
        return any(entry.name.startswith("torch_") for entry in os.scandir(directory))
    return False


def _is_in_use(path: str) -> bool:
    """Tell whether a process, of whatever container, has a file open or mapped: then it grants no lease."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _wait_until_gone(processes: Iterable[int]) -> None:
    """Wait for the ends of processes that have been killed; they are not our children, and take a moment."""
    limit = time.monotonic() + _PATIENCE
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            while time.monotonic() < limit:
                os.kill(process, 0)
                time.sleep(0.01)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends when the kernel does, and not before
    with open(0, encoding="utf-8", errors="surrogateescape", closefd=False) as told:
        sweep(remains(told))
    sys.exit(0)
