"""Sweep up when the kernel has gone: a small process that outlives it, run as a file by a bare interpreter.

It reads lines from standard input, whose other end only the kernel holds:

    +group 1234         the process group 1234 belongs to a worker
    -group 1234         it has been ended
    +directory /path    a directory of this kernel's
    -directory /path    it has been removed
    +file /path         a file of this kernel's; it may be gone by the end

At the end of the input, which is the kernel's own end, it kills the groups and removes the directories and
files that are left. Nothing but the standard library is imported: it should cost little and start at once.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Iterable


def remains(lines: Iterable[str]) -> dict[str, set[str]]:
    """Return what was begun and not ended, by kind: groups, directories, files."""
    left: dict[str, set[str]] = {"group": set(), "directory": set(), "file": set()}
    for line in lines:
        kind, _, name = line.rstrip("\n")[1:].partition(" ")
        if line.startswith("+"):
            left[kind].add(name)
        else:
            left[kind].discard(name)
    return left


def sweep(left: dict[str, set[str]]) -> None:
    """Kill process groups, remove directories and files; what is not there any more is fine."""
    for group in left["group"]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(int(group), signal.SIGKILL)
    for directory in left["directory"]:
        shutil.rmtree(directory, ignore_errors=True)
    for file in left["file"]:
        with contextlib.suppress(OSError):
            os.unlink(file)  # noqa: PTH108  # pathlib would take as long to import as all of this takes


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends when the kernel does, and not before
    with open(0, encoding="utf-8", errors="surrogateescape", closefd=False) as told:
        sweep(remains(told))
    sys.exit(0)
