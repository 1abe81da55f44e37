"""How many CPUs this process may use: its affinity, and the quota of its control group."""

from __future__ import annotations

import math
import os
from itertools import takewhile
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def allowed_cpus() -> int:
    """Count the CPUs that this process may use at the same time, at least one.

    A container with a quota of two CPUs on a machine of 64 shows all 64 to `os.cpu_count`.
    """
    return max(1, math.ceil(min(_affinity(), quota_cpus(_CGROUPS, _MEMBERSHIP))))


def quota_cpus(cgroups: Path, membership: Path) -> float:
    """Read the smallest CPU quota on the way up from this process's control group; infinite where none is."""
    quotas = [math.inf]
    for controllers, group in _memberships(membership):
        if controllers == [""]:
            quotas += [_quota_v2(place) for place in _upwards(cgroups, group)]
        elif "cpu" in controllers:
            quotas += [_quota_v1(place) for place in _upwards(cgroups / "cpu", group)]
    return min(quotas)


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memberships(membership: Path) -> list[tuple[list[str], str]]:
    """Return (controllers, path) of each hierarchy; version 2 is the one with no controllers named."""
    rows = [line.split(":", 2) for line in _text(membership).splitlines()]
    return [(row[1].split(","), row[2].strip("/")) for row in rows if len(row) == 3]  # noqa: PLR2004  # id:controllers:path


def _upwards(root: Path, group: str) -> list[Path]:
    # In a container the named group may lie outside of what is mounted; the root then carries the quota.
    place = root / group
    return [place, *takewhile(lambda parent: parent != root.parent, place.parents)]


def _quota_v2(place: Path) -> float:
    words = _text(place / "cpu.max").split()
    return int(words[0]) / int(words[1]) if words and words[0] != "max" else math.inf


def _quota_v1(place: Path) -> float:
    quota, period = _text(place / "cpu.cfs_quota_us"), _text(place / "cpu.cfs_period_us")
    return int(quota) / int(period) if quota and period and int(quota) > 0 else math.inf


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:  # not Linux, or a group that this container does not show: no quota is known
        return ""
