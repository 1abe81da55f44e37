"""What a rank's process uses of the machine, as Linux counts it; elsewhere nothing is known."""

from __future__ import annotations

import contextlib
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
    """Reads what one process uses, again and again; it has been at work since `began`."""

    def __init__(self, pid: int, began: float) -> None:
        self._pid = pid
        self._process = Path(f"/proc/{pid}")
        self._time, self._cpu = began, 0.0
        self._offset = 0
        with contextlib.suppress(OSError):
            # A forked process has its parent's memory until either writes to it. What it has for itself is
            # read once, which takes milliseconds; from then on counting what is added will do.
            own = _sizes(self._process / "smaps_rollup").get(b"Pss_Anon", 0)
            self._offset = own - _sizes(self._process / "status").get(b"RssAnon", 0)

    def read(self, now: float) -> Usage | None:
        """Read it; None where the process is gone, or the system does not tell."""
        try:
            sizes = _sizes(self._process / "status")
        except (OSError, ValueError):
            return None
        cpu = processor_seconds(self._pid)
        if cpu is None:
            return None
        share = (cpu - self._cpu) / (now - self._time) if now > self._time else 0.0
        self._time, self._cpu = now, cpu
        own = max(0, sizes.get(b"RssAnon", 0) + self._offset)
        return Usage(cpu=share, own=own, shared=sizes.get(b"RssShmem", 0))


def _sizes(file: Path) -> dict[bytes, int]:
    return {name: int(kilobytes) << 10 for name, kilobytes in _LINE.findall(file.read_bytes())}
