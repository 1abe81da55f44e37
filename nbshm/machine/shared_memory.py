"""The file system of shared memory with names, which torch and multiprocessing use."""

from __future__ import annotations

import os

DIRECTORY = "/dev/shm"  # noqa: S108  # it is only looked at


def free_shared_memory(directory: str = DIRECTORY) -> int | None:
    """Return the bytes that are left there; None where there is none."""
    try:
        status = os.statvfs(directory)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize
