"""What is known of a process that dies: its memory when last looked at, and what the system counted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from nbshm.events import Ended
from nbshm.failures.reports import Circumstances
from nbshm.machine.control_groups import group_directories, text_of
from nbshm.machine.proc import resident_memory
from nbshm.machine.shared_memory import free_shared_memory
from nbshm.processes.workers import Worker

LOOK_SECONDS = 0.25
"""Seconds between two looks: what a dead process had can't be seen any more."""

_COUNTS = ("memory.events", "memory.oom_control")  # of control groups, version 2 and 1
_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


class Vitals:
    """Looks at the workers of a run from time to time, and completes what is told of the end of one."""

    def __init__(self, now: float) -> None:
        self._kills: int | None = None  # counted at the first look: most runs have ended before
        self._memory: dict[int, int] = {}
        self._next = now + LOOK_SECONDS

    def look(self, workers: Iterable[Worker], now: float) -> None:
        """Note the memory of each living worker, if it is time."""
        if now < self._next:
            return
        self._next = now + LOOK_SECONDS
        if self._kills is None:
            self._kills = memory_kills()
        for worker in workers:
            resident = resident_memory(worker.pid)
            if resident:
                self._memory[worker.rank] = resident

    def complete(self, end: Ended) -> Ended:
        """Add what is known of a death by a signal."""
        return end if end.exitcode >= 0 else replace(end, circumstances=self._circumstances(end.rank))

    def _circumstances(self, rank: int) -> Circumstances:
        before, now = self._kills, memory_kills()
        return Circumstances(
            memory=self._memory.get(rank),
            memory_kills=None if before is None or now is None else now - before,
            free_shared=free_shared_memory(),
        )


def memory_kills() -> int | None:
    """Return how often the system has killed a process of this control group for lack of memory.

    None where it does not say.
    """
    for directory in group_directories("memory"):
        for name in _COUNTS:
            found = _KILLS.search(text_of(directory / name))
            if found:
                return int(found[1])
    return None
