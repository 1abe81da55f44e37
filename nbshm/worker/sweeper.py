"""Sweep up when the kernel has gone: a small process that outlives it, run as a file by a bare interpreter.

It reads lines from standard input, whose other end only the kernel holds:

    +group 1234         the process group 1234 belongs to a worker
    -group 1234         it has been ended
    +directory /path    a directory of this kernel's
    -directory /path    it has been removed

At the end of the input, which is the kernel's own end, it kills the groups and removes the directories that
are left. Nothing but the standard library is imported: it should cost little and start at once.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Iterable


def remains(lines: Iterable[str]) -> tuple[set[int], set[str]]:
    """Return the groups and the directories that were begun and not ended."""
    left: dict[str, set[str]] = {"group": set(), "directory": set()}
    for line in lines:
        kind, _, name = line.rstrip("\n")[1:].partition(" ")
        if line.startswith("+"):
            left[kind].add(name)
        else:
            left[kind].discard(name)
    return {int(group) for group in left["group"]}, left["directory"]


def sweep(groups: Iterable[int], directories: Iterable[str]) -> None:
    """Kill process groups and remove directories; what is not there any more is fine."""
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends when the kernel does, and not before
    with open(0, encoding="utf-8", errors="surrogateescape", closefd=False) as told:
        sweep(*remains(told))
    sys.exit(0)
