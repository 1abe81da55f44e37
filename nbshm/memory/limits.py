"""What there is room for: memory, file size, descriptors.

Asked before anything is moved: a page of shared memory that can't be had is a bus error, or a kill, where
it is first touched.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SPARE_DESCRIPTORS = (
    64  # for the sockets and pipes of the run itself, and what else the kernel opens meanwhile
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Bytes that are left, where, and how to get more."""

    nbytes: int
    where: str
    remedy: str


def largest_file() -> Room | None:
    """Return the limit for the size of a file, which holds for segments too; None if there is none."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit == resource.RLIM_INFINITY:
        return None
    return Room(
        nbytes=limit,
        where="one file (RLIMIT_FSIZE)",
        remedy="Raise the limit (ulimit -f), or use smaller pieces.",
    )


def memory_left() -> Room | None:
    """Return the least of the machine's free memory and that of this process's control groups."""
    return min([*_machine(), *_control_groups()], key=lambda room: room.nbytes, default=None)


def descriptors_left(wanted: int) -> int:
    """Return how many descriptors a run may take; for `wanted` the soft limit is raised as far as it goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = sum(1 for _ in Path("/proc/self/fd").iterdir())
    needed = used + wanted + _SPARE_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and needed > soft:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(0, soft - used - _SPARE_DESCRIPTORS)


def _machine() -> Iterator[Room]:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    yield Room(
        nbytes=1024 * (kilobytes.get("MemAvailable", 0) + kilobytes.get("SwapFree", 0)),
        where="this machine's memory",
        remedy="Free some, or use smaller pieces.",
    )


def _control_groups() -> Iterator[Room]:
    try:
        memberships = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    for directory in group_directories(memberships, Path("/sys/fs/cgroup")):
        room = room_in_group(directory)
        if room is not None:
            yield room


def group_directories(memberships: str, root: Path) -> Iterator[Path]:
    """Yield the directories of memory control groups in /proc/self/cgroup, each with those above it."""
    for line in memberships.splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" or "memory" in controllers.split(","):
            top = root if number == "0" else root / "memory"
            group = top / path.lstrip("/")
            yield group
            yield from (parent for parent in group.parents if parent.is_relative_to(top))


def room_in_group(directory: Path) -> Room | None:
    """Return what a control group, of either version, leaves; None if it sets no limit."""
    limit = _first_number(directory / "memory.max", directory / "memory.limit_in_bytes")
    used = _first_number(directory / "memory.current", directory / "memory.usage_in_bytes")
    if limit is None or used is None:
        return None
    return Room(
        nbytes=max(0, limit - used + _reclaimable(directory)),
        where="this container's memory limit",
        remedy="Raise the container's memory limit, free some, or use smaller pieces.",
    )


def _first_number(*files: Path) -> int | None:
    """Read the first of the files that there is; None for `max`, which is no limit."""
    for file in files:
        try:
            text = file.read_text(encoding="ascii").strip()
        except OSError:
            continue
        return int(text) if text.isdigit() else None
    return None


def _reclaimable(directory: Path) -> int:
    """Return the bytes of cached files that the system gives up when memory is needed."""
    try:
        lines = (directory / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    counts = dict(line.split(maxsplit=1) for line in lines)
    return int(counts.get("total_inactive_file", counts.get("inactive_file", 0)))
