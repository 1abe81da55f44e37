"""Put frames of bytes and file descriptors together from what arrives at a socket (see `transport.py`)."""

from __future__ import annotations

import array
import errno
import os
import resource
import socket
import struct
from dataclasses import dataclass

from nbshm.machine.descriptor_limit import allow_descriptors

HEADER = struct.Struct("<QI")
"""What a frame begins with: bytes in the payload, number of descriptors."""

BATCH = 250
"""Descriptors on one carrier: below SCM_MAX_FD, which is 253 since Linux 2.6.38."""

_ANCILLARY = socket.CMSG_SPACE(253 * array.array("i").itemsize)
_SPARE = 64
"""Descriptors left free when the soft limit is raised for a frame."""


class DescriptorsLost(OSError):  # noqa: N818  # its name is the condition
    """Descriptors of a frame could not be received: the process may not open more."""

    def __init__(self, received: int, expected: int) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        super().__init__(
            errno.EMFILE,
            f"received {received} of {expected} file descriptors: the process may open {soft} "
            f"(hard limit {hard}). Raise the limit with `ulimit -n` or send fewer, larger objects.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One message as it arrived; who takes the frame owns its descriptors."""

    payload: bytearray
    fds: list[int]


class FrameReader:
    """Put frames together from what one read after the other brings; a frame may take many."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._header = bytearray(HEADER.size)
        self._payload: bytearray | None = None
        self._fds: list[int] = []
        self._missing = [memoryview(self._header)]
        self.ended = False
        self.taken = 0

    def read(self, flags: int) -> Frame | None:
        """Take bytes with one system call; return the frame if they complete one."""
        count = self._receive_into(self._missing[0], flags)
        if not count:
            self.ended = True
            self.close()
            return None
        self.taken += count
        self._missing[0] = self._missing[0][count:]
        return self._advance()

    def close(self) -> None:
        """Close the descriptors of a frame that is not complete."""
        for fd in self._fds:
            os.close(fd)
        self._fds = []

    def _begin(self) -> None:
        self._payload = None
        self._fds = []
        self._missing = [memoryview(self._header)]

    def _advance(self) -> Frame | None:
        if self._missing[0]:
            return None
        del self._missing[0]
        if self._payload is None:
            self._payload = self._open_payload()
        return None if self._missing else self._finish(self._payload)

    def _open_payload(self) -> bytearray:
        length, count = HEADER.unpack(self._header)
        _allow_descriptors(count)
        payload = bytearray(length)
        carriers = bytearray(-(-count // BATCH))
        self._missing = [memoryview(part) for part in (carriers, payload) if part]
        return payload

    def _finish(self, payload: bytearray) -> Frame:
        _, expected = HEADER.unpack(self._header)
        if len(self._fds) != expected:
            lost = DescriptorsLost(len(self._fds), expected)
            self.close()
            self._begin()
            raise lost
        frame = Frame(payload=payload, fds=self._fds)
        self._begin()
        return frame

    def _receive_into(self, view: memoryview, flags: int) -> int:
        try:
            count, ancillary, _, _ = self._connection.recvmsg_into(
                [view], _ANCILLARY, flags | socket.MSG_CMSG_CLOEXEC
            )
        except ConnectionResetError:  # the sender died before it had read everything that was sent to it
            return 0
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self._fds.extend(_descriptors(data))
        return count


def _descriptors(data: bytes) -> array.array[int]:
    fds = array.array("i")
    fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return fds


def _allow_descriptors(count: int) -> None:
    """Raise the soft limit as far as it goes if `count` more descriptors may not fit below it.

    Linux drops descriptors silently that the receiver may not open, and a worker's soft limit is the one that
    the forkserver was started with.
    """
    if count >= BATCH:
        allow_descriptors(count + _SPARE)
