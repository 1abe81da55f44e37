"""The file system of shared memory with names, which torch and multiprocessing use."""

from __future__ import annotations

import os

DIRECTORY = "/dev/shm"  # noqa: S108  # where shm_open and sem_open put their files


def free_shared_memory(directory: str = DIRECTORY) -> int | None:
    """Return the bytes that this process may fill there; None on a system that has no such place."""
    if not os.access(directory, os.W_OK | os.X_OK):  # missing, read-only, or another user's
        return 0 if hasattr(os, "memfd_create") else None
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize
