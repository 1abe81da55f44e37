"""Files in memory that have no name, in which lies what kernel and workers share."""

from __future__ import annotations

import errno
import os

from nbshm.errors import ParallelError

_REFUSALS = (errno.ENOSYS, errno.EPERM, errno.EACCES)
"""What a sandbox or a profile of seccomp answers; all else is for want of something."""


def new_memfd(name: str) -> int:
    """Make an empty one; return its descriptor.

    Raises
    ------
    ParallelError
        The system does not have them, or does not let this process have any.

    """
    if not hasattr(os, "memfd_create"):
        raise ParallelError(f"{_IMPOSSIBLE}: only Linux has memfds.")
    try:
        return os.memfd_create(name)
    except OSError as error:
        if error.errno in _REFUSALS:
            raise ParallelError(
                f"{_IMPOSSIBLE}: it refuses memfd_create ({error.strerror}). Run Jupyter outside of the "
                "sandbox that forbids it (seccomp), or have it allowed there."
            ) from None
        raise


_IMPOSSIBLE = "memory can't be shared on this system"
