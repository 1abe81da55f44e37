"""What programs inherit that a worker or a child starts: the standard streams alone."""

from __future__ import annotations

import contextlib
import os

from nbshm.machine.descriptor_limit import opened_descriptors

_STDERR = 2


def keep_from_programs() -> None:
    """Let programs that this process starts hold none of the descriptors that it has now.

    multiprocessing leaves those that a child was given inheritable, the end of the pipe among them by which
    the parent sees that the child has ended. torch's manager of named storages outlives the process that
    started it, and would hold that pipe open.
    """
    for fd in opened_descriptors():
        if fd > _STDERR:
            with contextlib.suppress(OSError):  # the one by which the directory was read
                os.set_inheritable(fd, False)  # noqa: FBT003  # it takes no names
