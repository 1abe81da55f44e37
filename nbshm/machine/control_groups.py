"""The control groups that this process is in, of both versions: where the files of their limits lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

MEMBERSHIP = Path("/proc/self/cgroup")
MOUNTED = Path("/sys/fs/cgroup")


def group_directories(
    controller: str, *, membership: Path = MEMBERSHIP, mounted: Path = MOUNTED
) -> Iterator[Path]:
    """Yield the directories of the groups that `controller` limits this process by, each with those above it.

    In a container the named group may lie outside of what is mounted there; the top then has its limits.
    """
    for line in text_of(membership).splitlines():
        number, controllers, group = line.split(":", 2)
        if number == "0" or controller in controllers.split(","):  # version 2 is the one with the number 0
            top = mounted if number == "0" else mounted / controller
            place = top / group.strip("/")
            yield place
            yield from (parent for parent in place.parents if parent.is_relative_to(top))


def text_of(file: Path) -> str:
    """Return what a file of a control group says; nothing where it is not there."""
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:  # not Linux, the other version, or a group that this container does not show
        return ""
