"""What a rank's process uses of the machine, as Linux counts it; elsewhere nothing is known."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from nbshm.machine.proc import processor_seconds

_LINE = re.compile(rb"^(RssAnon|RssShmem|Pss_Anon):\s+(\d+) kB", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a process uses: `cpu` is the share of one core since the reading before.

    `own` are the bytes of memory that it has for itself, `shared` those of shared memory that it has touched;
    `gpu` is its memory on GPUs, None where it uses none.
    """

    cpu: float
    own: int
    shared: int
    gpu: int | None = None


class Gauge:
    """Reads what one process uses, again and again; it has been at work since `began`.

    `inherited` are the bytes of its memory that are not its own (see `inherited_memory`).
    """

    def __init__(self, pid: int, began: float, *, inherited: int = 0) -> None:
        self._pid = pid
        self._status = Path(f"/proc/{pid}/status")
        self._time, self._cpu = began, 0.0
        self._inherited = inherited

    def read(self, now: float) -> Usage | None:
        """Read it; None where the process is gone, or the system does not tell."""
        try:
            sizes = _sizes(self._status)
        except (OSError, ValueError):
            return None
        cpu = processor_seconds(self._pid)
        if cpu is None:
            return None
        share = (cpu - self._cpu) / (now - self._time) if now > self._time else 0.0
        self._time, self._cpu = now, cpu
        own = max(0, sizes.get(b"RssAnon", 0) - self._inherited)
        return Usage(cpu=share, own=own, shared=sizes.get(b"RssShmem", 0))


def inherited_memory(pid: int) -> int | None:
    """Return how much of a process's memory is not its own; None where the system does not tell.

    A forked process has its parent's memory until either writes to it. Looking for that takes milliseconds,
    so it is done once for all that come from one parent.
    """
    process = Path(f"/proc/{pid}")
    try:
        own = _sizes(process / "smaps_rollup").get(b"Pss_Anon", 0)
        return max(0, _sizes(process / "status").get(b"RssAnon", 0) - own)
    except OSError:
        return None


def _sizes(file: Path) -> dict[bytes, int]:
    return {name: int(kilobytes) << 10 for name, kilobytes in _LINE.findall(file.read_bytes())}
