"""What a forked worker leaves behind: the kernel's signal handlers, doors and forkserver.

Everything else of the kernel's memory is the worker's too; that is what fork is asked for.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import forkserver
from typing import Any

from nbshm.machine.descriptor_limit import opened_descriptors
from nbshm.wire.forkservers import let_go


def leave_kernel() -> None:
    """Let go of what is the kernel's alone; call it first in a forked worker."""
    _reset_signals()
    let_go(forkserver._forkserver)  # noqa: SLF001  # the kernel's own; waiting for it, no child of this process, fails
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in _kernel_sockets():
        os.dup2(nothing, fd)  # not closed: an object that was forked along may yet close that number
    os.close(nothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Socket:
    fd: int
    port: Any
    listens: bool


def _kernel_sockets() -> list[int]:
    """Return the descriptors of sockets that listen, and of connections that came in at their ports."""
    sockets = list(_open_sockets())
    ports = {one.port for one in sockets if one.listens}
    return [one.fd for one in sockets if one.listens or one.port in ports]


def _open_sockets() -> Iterator[_Socket]:
    for fd in opened_descriptors():
        try:
            yield _examine(fd)
        except OSError:  # noqa: PERF203  # no socket, or one that was open only while the directory was read
            continue


def _examine(fd: int) -> _Socket:
    if not stat.S_ISSOCK(os.fstat(fd).st_mode):  # else the copy of what is no socket would stay open
        raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
    with socket.socket(fileno=os.dup(fd)) as copy:
        name = copy.getsockname()
        listens = copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        is_internet = copy.family in {socket.AF_INET, socket.AF_INET6}
        return _Socket(fd=fd, port=name[1] if is_internet else name, listens=bool(listens))


def _reset_signals() -> None:
    """Let signals do what they do to any process, where the kernel has handlers of its own."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)) and number != signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)
