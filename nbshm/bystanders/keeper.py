"""Keep file descriptors that are on their way through a queue: a small process beside the kernel.

It is run as a file by a bare interpreter, and hears datagrams at the socket that its argument numbers:

    + token, with a socket and two descriptors    keep the first as long as the second, where it was sent,
                                                  has a reader, and say so at the socket
    - token, with a socket                        send the descriptor there that was kept for this token

What is kept has been answered for before the message is written that tells of it: who has read that finds it
here. No answer means that there is no room for more descriptors, or that the token is not known.
What nobody can ask for any more is given up, so that a queue which is thrown away full keeps no memory. The
end of standard input, whose other end only the kernel holds, is the end of all. Nothing but the standard
library is imported: it should cost little and start at once.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import socket
import sys
from typing import TypeAlias

KEEP, TAKE = b"+", b"-"
LONGEST = 64
"""Bytes that a datagram may have."""
_FREE = 8  # descriptors that are not kept: who asks for what is kept sends one along

Pipe: TypeAlias = tuple[int, int]
"""A pipe or a socket as the system knows it: device and inode; any number of descriptors lead to it."""


class Keeper:
    """Descriptors by token, and the pipes through which their tokens travel; `most` may be open."""

    def __init__(self, door: socket.socket, *, most: int) -> None:
        self._door = door
        self._most = most
        self._kept: dict[bytes, tuple[int, Pipe]] = {}
        self._pipes: dict[Pipe, int] = {}
        self._tokens: dict[Pipe, set[bytes]] = {}
        self._watch = select.poll()
        self._watch.register(door, select.POLLIN)

    def serve(self, life: int) -> None:
        """Keep and hand out until nobody holds the other end of `life` any more."""
        self._watch.register(life, 0)
        while True:
            for fd, _ in self._watch.poll():
                if fd == life:
                    return
                if fd == self._door.fileno():
                    self._hear()
                else:
                    self._give_up(fd)

    def _hear(self) -> None:
        message, fds, _, _ = socket.recv_fds(self._door, LONGEST, 3, socket.MSG_CMSG_CLOEXEC)
        verb, token = message[:1], message[1:]
        if verb == KEEP and len(fds) == 3 and max(fds) < self._most - _FREE:  # noqa: PLR2004  # as told above
            self._keep(token, *fds)
        elif verb == TAKE and len(fds) == 1:
            self._hand_out(token, *fds)
        else:  # the process may open no more
            for fd in fds:
                os.close(fd)

    def _keep(self, token: bytes, reply: int, fd: int, pipe_fd: int) -> None:
        pipe = _identity(pipe_fd)
        if pipe in self._pipes:
            os.close(pipe_fd)
        else:
            self._pipes[pipe], self._tokens[pipe] = pipe_fd, set()
            self._watch.register(pipe_fd, 0)  # what is told in any case: that it has no reader any more
        self._tokens[pipe].add(token)
        self._kept[token] = fd, pipe
        with socket.socket(fileno=reply) as to_sender, contextlib.suppress(BrokenPipeError):
            to_sender.send(KEEP)

    def _hand_out(self, token: bytes, reply: int) -> None:
        with socket.socket(fileno=reply) as to_taker, contextlib.suppress(BrokenPipeError):
            if token not in self._kept:
                return
            fd, pipe = self._kept[token]
            socket.send_fds(to_taker, [TAKE], [fd])
            self._forget(token)
            if not self._tokens[pipe]:  # so that a reader who waits for the end of it finds the end
                self._close(pipe)

    def _give_up(self, pipe_fd: int) -> None:
        """Let go of all that was sent through a pipe which nobody reads any more."""
        for pipe in [pipe for pipe, fd in self._pipes.items() if fd == pipe_fd]:
            for token in list(self._tokens[pipe]):
                self._forget(token)
            self._close(pipe)

    def _forget(self, token: bytes) -> None:
        fd, pipe = self._kept.pop(token)
        self._tokens[pipe].remove(token)
        os.close(fd)

    def _close(self, pipe: Pipe) -> None:
        del self._tokens[pipe]
        fd = self._pipes.pop(pipe)
        self._watch.unregister(fd)
        os.close(fd)


def _identity(fd: int) -> Pipe:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends when the kernel does, and not before
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    Keeper(socket.socket(fileno=int(sys.argv[1])), most=most).serve(0)
