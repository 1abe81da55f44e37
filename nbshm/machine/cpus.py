"""How many CPUs this process may use: its affinity, and the quota of its control group."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path

from nbshm.machine.control_groups import group_directories, text_of


def allowed_cpus() -> int:
    """Count the CPUs that this process may use at the same time, at least one.

    A container with a quota of two CPUs on a machine of 64 shows all 64 to `os.cpu_count`.
    """
    return max(1, math.ceil(min(_affinity(), quota_cpus(group_directories("cpu")))))


def quota_cpus(groups: Iterable[Path]) -> float:
    """Return the smallest CPU quota among control groups; infinite where none is."""
    return min((_quota(group) for group in groups), default=math.inf)


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quota(group: Path) -> float:
    """Read the quota of a group of version 2, or of version 1, where -1 is none."""
    quota, _, period = text_of(group / "cpu.max").partition(" ")
    if not quota:
        quota, period = text_of(group / "cpu.cfs_quota_us"), text_of(group / "cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdigit() and period else math.inf
