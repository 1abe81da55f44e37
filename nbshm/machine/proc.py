"""What /proc tells of a process; of one that is gone, or where there is no /proc, it is nothing."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_UTIME, _STIME = 11, 12  # places after the process's name in /proc/PID/stat, see proc(5)


def processor_seconds(pid: int) -> float | None:
    """Return the processor time that a process has used."""
    fields = _status(pid)
    return (int(fields[_UTIME]) + int(fields[_STIME])) / os.sysconf("SC_CLK_TCK") if fields else None


def is_stopped(pid: int) -> bool:
    """Tell whether a signal or a debugger has stopped a process."""
    return _status(pid)[:1] in ([b"T"], [b"t"])


def waits_for_child(pid: int) -> bool:
    """Tell whether a process's main thread waits for a child process, where the system tells at all."""
    try:
        return Path(f"/proc/{pid}/wchan").read_bytes() == b"do_wait"
    except OSError:
        return False


def resident_memory(pid: int) -> int | None:
    """Return the bytes of memory that a process has and uses, shared ones too."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return None


def thread_names(pid: int) -> dict[int, str]:
    """Return the names that the system has for a process's threads, by their ids."""
    names = {}
    for path in Path(f"/proc/{pid}/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it has just ended
            names[int(path.parent.name)] = path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    return names


def has_children(pid: int) -> bool | None:
    """Tell whether a process has children."""
    try:
        return any(path.read_text().strip() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    except OSError:
        return None


def _status(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []
