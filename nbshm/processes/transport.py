"""Carry frames of bytes and file descriptors over a Unix socket, in both directions and in order.

    sender                                         receiver
    post(payload, fds) ─┐                     ┌─▶ receive()   waits for one frame
                        ├─ header ─ carriers ─┤
    send(payload, fds) ─┘        ─ payload    └─▶ feed()      takes what has arrived

A frame begins with a header (bytes in the payload, number of descriptors). Descriptors ride on *carriers*,
bytes that mean nothing else: Linux takes at most 253 of them on one message (`SCM_MAX_FD`), and hands them
over with the first byte of the message that they were sent with. The two ends of a channel are symmetrical.
"""

from __future__ import annotations

import array
import collections
import contextlib
import errno
import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nbshm.descriptor_limit import allow_descriptors

_HEADER = struct.Struct("<QI")
_BATCH = 250
"""Descriptors on one carrier: below SCM_MAX_FD, which is 253 since Linux 2.6.38."""

_ANCILLARY = socket.CMSG_SPACE(253 * array.array("i").itemsize)
_FEED = 4 << 20
"""Bytes that one `feed` takes at most, so that one worker's big result doesn't hide the other workers."""

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


class Channel:
    """One end of a Unix stream socket that speaks in frames.

    `send` and `receive` wait; `post`, `flush` and `feed` never do. Sending is safe from several threads;
    receiving is for one thread at a time.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = _FrameReader(connection)
        self._outgoing: collections.deque[_Piece] = collections.deque()
        self._sending = threading.Lock()
        self.crowded = False
        """Whether the last `flush` had to leave descriptors unsent because too many are on their way."""

    def __repr__(self) -> str:
        state = "closed" if self.fileno() < 0 else "ended" if self.ended else "open"
        return f"<Channel fd={self.fileno()} {state}>"

    def fileno(self) -> int:
        """Return the socket's descriptor, so that selectors can wait for the channel."""
        return self._connection.fileno()

    @property
    def ended(self) -> bool:
        """Whether the other side has gone and everything that it said was read."""
        return self._reader.ended

    @property
    def unsent(self) -> bool:
        """Whether posted bytes still wait for room in the socket."""
        return bool(self._outgoing)

    def post(self, payload: bytes | bytearray | memoryview, fds: Sequence[int] = ()) -> None:
        """Queue a frame; payload and descriptors must stay as they are until `flush` has returned True."""
        with self._sending:
            self._outgoing.extend(_pieces(payload, fds))

    def flush(self) -> bool:
        """Send what the socket takes without waiting; return whether everything posted has gone.

        What was meant for a receiver that has gone is dropped: its end is told by its process.
        """
        with self._sending:
            self.crowded = False
            try:
                while self._outgoing:
                    self._send_some(socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except _InFlightError:
                self.crowded = True
                return False
            except (BrokenPipeError, ConnectionResetError):
                self._outgoing.clear()
            return True

    def send(self, payload: bytes | bytearray | memoryview, fds: Sequence[int] = ()) -> None:
        """Send a frame, and whatever was posted before it; BrokenPipeError where the receiver has gone."""
        with self._sending:
            self._outgoing.extend(_pieces(payload, fds))
            try:
                while self._outgoing:
                    self._send_patiently()
            except (BrokenPipeError, ConnectionResetError):
                self._outgoing.clear()
                raise

    def receive(self) -> Frame | None:
        """Wait for one frame; None where the sender has gone, also in the middle of a frame."""
        while not self.ended:
            frame = self._reader.read(0)
            if frame is not None:
                return frame
        return None

    def next_frame(self) -> Frame | None:
        """Return the next frame if it is complete by now; None where it is not, or the sender has gone."""
        with contextlib.suppress(BlockingIOError):
            while not self.ended:
                frame = self._reader.read(socket.MSG_DONTWAIT)
                if frame is not None:
                    return frame
        return None

    def feed(self) -> list[Frame]:
        """Return the frames that are complete by now, without waiting; look at `ended` afterwards."""
        frames: list[Frame] = []
        until = self._reader.taken + _FEED
        while self._reader.taken < until:
            frame = self.next_frame()
            if frame is None:
                break
            frames.append(frame)
        return frames

    def close(self) -> None:
        """Close the socket, and descriptors that have arrived for a frame that never will be complete."""
        self._reader.close()
        self._outgoing.clear()
        self._connection.close()

    def _send_patiently(self) -> None:
        try:
            self._send_some(0)
        except _InFlightError:
            time.sleep(0.001)

    def _send_some(self, flags: int) -> None:
        piece = self._outgoing[0]
        sent = _sendmsg(self._connection, piece, flags)
        if sent == len(piece.data):
            self._outgoing.popleft()
        else:
            self._outgoing[0] = _Piece(data=piece.data[sent:])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """Bytes that go in one message, and the descriptors that ride on it."""

    data: memoryview
    fds: Sequence[int] = ()


def _pieces(payload: bytes | bytearray | memoryview, fds: Sequence[int]) -> Iterator[_Piece]:
    data = memoryview(payload).cast("B")
    yield _Piece(data=memoryview(_HEADER.pack(len(data), len(fds))))
    for start in range(0, len(fds), _BATCH):
        yield _Piece(data=memoryview(b"\0"), fds=fds[start : start + _BATCH])
    if data:
        yield _Piece(data=data)


class _InFlightError(OSError):
    """More descriptors are on their way than the user may have there; the receivers will make room.

    Linux counts the descriptors that were sent and not received yet against the sender's RLIMIT_NOFILE.
    """


def _sendmsg(connection: socket.socket, piece: _Piece, flags: int) -> int:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", piece.fds))] if piece.fds else []
    try:
        return connection.sendmsg([piece.data], rights, flags)
    except OSError as error:
        if error.errno == errno.ETOOMANYREFS:
            raise _InFlightError(*error.args) from None
        raise


class _FrameReader:
    """Put frames together from what one read after the other brings; a frame may take many."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._header = bytearray(_HEADER.size)
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
        length, count = _HEADER.unpack(self._header)
        _allow_descriptors(count)
        payload = bytearray(length)
        carriers = bytearray(-(-count // _BATCH))
        self._missing = [memoryview(part) for part in (carriers, payload) if part]
        return payload

    def _finish(self, payload: bytearray) -> Frame:
        _, expected = _HEADER.unpack(self._header)
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
    if count >= _BATCH:
        allow_descriptors(count + _SPARE)
