"""Descriptors that go through queues and pipes, and outlive the process that sent them.

Tensors, connections and sockets are pickled as a descriptor that the receiver has yet to fetch. The standard
library lets it be fetched from the sender, so what a process has put on a queue is lost when the process ends
(`ConnectionRefusedError` where it is taken). So while this hook is installed a descriptor is handed to the
keeper (`nbshm/bystanders/keeper.py`) before the message that tells of it is written, and fetched there.
"""

from __future__ import annotations

import contextlib
import errno
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from multiprocessing import connection, context, queues, reduction
from typing import Any

from nbshm.bystanders.keeper import KEEP, LONGEST, TAKE
from nbshm.machine.descriptor_limit import can_open
from nbshm.replacing import Replacement

_FEW = 32  # descriptors: with less a process can't do much


class Lost(OSError):  # noqa: N818  # its name is the condition
    """What a message told of is not kept any more."""

    def __init__(self) -> None:
        super().__init__(
            errno.ENOENT,
            "what this message carries (a tensor, a connection) is no longer kept: it was fetched before, or "
            "the nbshm extension that kept it has been unloaded since, or its process killed. "
            "Put it on the queue again.",
        )


class TooMany(OSError):  # noqa: N818  # likewise
    """The process may open no more files, and needs one for what it receives."""

    def __init__(self) -> None:
        super().__init__(
            errno.EMFILE,
            "this process may open no more files, and each tensor that it gets from a queue keeps one open. "
            "Use %shm_strategy file_system, keep clone()s of tensors, or raise the limit (ulimit -n).",
        )


class KeptFd:
    """A descriptor that the keeper has, on its way through a queue; unpickled it can be fetched, once."""

    def __init__(self, keeper: str, token: bytes) -> None:
        self._keeper = keeper
        self._token = token

    def detach(self) -> int:
        """Fetch the descriptor, which is the caller's own then.

        A tensor keeps it open; so a process that collects what it is sent (the batches of a loader) runs out
        of them here. The soft limit is raised as far as it goes before that.
        """
        if not can_open(_FEW):
            raise TooMany
        answer, fds = _ask(self._keeper, TAKE + self._token)
        if fds:
            return fds[0]
        raise TooMany if answer else Lost


class Keeping(Replacement):
    """Has descriptors kept by the keeper while it is installed, in this process and those forked from it.

    `keeper()` tells the address of the keeper's socket, None where there is none.
    """

    def __init__(self, keeper: Callable[[], str | None]) -> None:
        self._keeper = keeper
        super().__init__(reduction, "DupFd", self.keep_or_share)

    def keep(self, fd: int) -> KeptFd | None:
        """Have a descriptor kept for the message that is being pickled; None where that can't be."""
        sender = _sender()
        keeper = None if sender is None or not can_open(_FEW) else self._keeper()
        if keeper is None:
            return None
        token = secrets.token_bytes(16)
        answer, _ = _ask(keeper, KEEP + token, fd, sender.fileno())
        return KeptFd(keeper, token) if answer else None

    def keep_or_share(self, fd: int) -> Any:
        """Return what stands for a descriptor in a pickle; who starts a process hands it over itself."""
        kept = self.keep(fd) if context.get_spawning_popen() is None else None
        return self.original(fd) if kept is None else kept


def _ask(keeper: str, message: bytes, *fds: int) -> tuple[bytes, list[int]]:
    """Return the keeper's answer, and the descriptors that come with it; nothing if it can't, or has gone."""
    ours, theirs = socket.socketpair()
    with ours, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        with theirs, contextlib.suppress(OSError):  # it has gone, with the kernel or with the extension
            door.connect(keeper)
            socket.send_fds(door, [message], [theirs.fileno(), *fds])
        answer, received, _, _ = socket.recv_fds(ours, LONGEST, 1, socket.MSG_CMSG_CLOEXEC)
    return answer, received


def _sender() -> Any:
    """Return the connection for which something is being pickled in this thread, None where there is none.

    A pickler does not know where its bytes go. But who pickles and then writes tells: the standard library's
    functions by the frames that are waiting for the pickler, the feeder of a queue by its thread (the frame
    of that would keep alive what it has shown).
    """
    frame = sys._getframe(1)  # noqa: SLF001  # the only way to see who pickles
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code is _PUT:
            return frame.f_locals["self"]._writer  # noqa: SLF001  # its name since Python 3.3
        if frame.f_code is _SEND:
            return frame.f_locals["self"]
    thread: Any = threading.current_thread()
    is_feeder = getattr(thread, "_target", None) is queues.Queue._feed  # type: ignore[attr-defined]  # noqa: SLF001  # since 3.3
    return thread._args[_SEND_BYTES].__self__ if is_feeder else None  # noqa: SLF001  # what it was made with


_PUT = queues.SimpleQueue.put.__code__
_SEND = connection._ConnectionBase.send.__code__  # noqa: SLF001  # no other name
_SEND_BYTES = 2  # the place of `send_bytes` among the feeder's arguments
