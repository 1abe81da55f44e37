"""Tie a worker's life to the kernel's: when the kernel is gone, the worker is killed.

The kernel alone holds the write end of a pipe. The worker asks Linux to be sent SIGKILL when something
happens at the read end, and the only thing that ever happens there is its end. That works while the worker
sits in C code with the GIL held, which a thread that waits does not; the thread is for systems without
`F_SETSIG`. A parent-death signal would be no use: the worker's parent is the forkserver.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading

from nbshm.wire.readiness import wait_readable


def arm(fd: int) -> None:
    """Let this process be killed as soon as the pipe's write end is closed; takes the descriptor over."""
    if hasattr(fcntl, "F_SETSIG"):
        _arm_signal(_reopen(fd))
    else:
        threading.Thread(target=_wait_for_end, args=(fd,), name="nbshm-lifeline", daemon=True).start()


def _reopen(fd: int) -> int:
    """Open the pipe once more: owner and signal belong to the open file, which all workers of a run share."""
    own = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK)
    os.close(fd)
    return own


def _arm_signal(fd: int) -> None:
    fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
    if wait_readable(fd, 0):  # the kernel was gone before the signal was asked for
        os.kill(os.getpid(), signal.SIGKILL)


def _wait_for_end(fd: int) -> None:
    wait_readable(fd)
    os.kill(os.getpid(), signal.SIGKILL)
