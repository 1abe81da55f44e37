"""What there is room for: memory, addresses, file size, /dev/shm.

Asked before anything is moved: a page of shared memory that can't be had is a bus error, or a kill, where
it is first touched.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nbshm.machine.control_groups import group_directories, text_of
from nbshm.machine.shared_memory import DIRECTORY, free_shared_memory

_MEMORY = Path("/proc/meminfo")
_OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
_STRICT = "2"  # only with this value does Linux count what was promised, and refuse


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


def addresses_left() -> Room | None:
    """Return what the limit for this process's mappings leaves; None if there is none."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    pages = int(text_of(Path("/proc/self/statm")).split()[0])
    return Room(
        nbytes=max(0, limit - pages * os.sysconf("SC_PAGE_SIZE")),
        where="what this process may map (RLIMIT_AS)",
        remedy="Raise the limit (ulimit -v), or use smaller pieces.",
    )


def memory_left() -> Room | None:
    """Return the least of the machine's free memory and that of this process's control groups."""
    kilobytes = _counts(text_of(_MEMORY), separator=":")
    swap = 1024 * kilobytes.get("SwapFree", 0)
    groups = (room_in_group(directory, swap=swap) for directory in group_directories("memory"))
    rooms = [*_machine(kilobytes), *(room for room in groups if room is not None)]
    return min(rooms, key=lambda room: room.nbytes, default=None)


def shared_memory_left(directory: str = DIRECTORY) -> Room | None:
    """Return what is left for memory with a name, which torch and multiprocessing use; None without any."""
    nbytes = free_shared_memory(directory)
    if nbytes is None:
        return None
    return Room(
        nbytes=nbytes,
        where=directory,
        remedy=f"Make {directory} larger: docker run --shm-size=2g; in Kubernetes mount an emptyDir with "
        "medium: Memory there.",
    )


def room_in_group(directory: Path, *, swap: int) -> Room | None:
    """Return what a control group, of either version, leaves; None if it sets no limit.

    Beyond its limit a group may use the machine's `swap` bytes, as far as a limit of its own lets it.
    """
    limit = _number(directory, "memory.max", "memory.limit_in_bytes")
    used = _number(directory, "memory.current", "memory.usage_in_bytes")
    if limit is None or used is None:
        return None
    left = limit - used + _reclaimable(directory)
    return Room(
        nbytes=max(0, left + min(swap, _swap_left(directory, memory=limit - used))),
        where="this container's memory limit",
        remedy="Raise the container's memory limit, free some, or use smaller pieces.",
    )


def _machine(kilobytes: dict[str, int]) -> Iterator[Room]:
    if "MemAvailable" not in kilobytes:
        return
    remedy = "Free some, or use smaller pieces."
    nbytes = 1024 * (kilobytes["MemAvailable"] + kilobytes.get("SwapFree", 0))
    yield Room(nbytes=nbytes, where="this machine's memory", remedy=remedy)
    if text_of(_OVERCOMMIT) == _STRICT:
        nbytes = 1024 * max(0, kilobytes["CommitLimit"] - kilobytes["Committed_AS"])
        yield Room(nbytes=nbytes, where="what this machine promises (vm.overcommit_memory=2)", remedy=remedy)


def _reclaimable(directory: Path) -> int:
    """Return the bytes of cached files that the system gives up when memory is needed."""
    counts = _counts(text_of(directory / "memory.stat"), separator=" ")
    total = "total_" if "total_inactive_file" in counts else ""  # those below included
    return sum(counts.get(f"{total}{kind}_file", 0) for kind in ("active", "inactive"))


def _swap_left(directory: Path, *, memory: int) -> int:
    """Return how much swap a group may still use; version 1 limits the sum of `memory` and swap."""
    limit = _number(directory, "memory.swap.max")
    if limit is not None:
        return max(0, limit - (_number(directory, "memory.swap.current") or 0))
    limit = _number(directory, "memory.memsw.limit_in_bytes")
    if limit is not None:
        return max(0, limit - (_number(directory, "memory.memsw.usage_in_bytes") or 0) - memory)
    return sys.maxsize


def _number(directory: Path, *names: str) -> int | None:
    """Read the first of the files that there is; None for `max`, which is no limit."""
    text = next((text for name in names if (text := text_of(directory / name))), "")
    return int(text) if text.isdigit() else None


def _counts(text: str, *, separator: str) -> dict[str, int]:
    """Read lines of a name, a separator, a number and perhaps a unit."""
    pairs = (line.split(separator, 1) for line in text.splitlines())
    return {name: int(rest.split()[0]) for name, rest in pairs}
