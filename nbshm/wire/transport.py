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
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nbshm.wire.receiving import BATCH, HEADER, Frame, FrameReader

_FEED = 4 << 20
"""Bytes that one `feed` takes at most, so that one worker's big result doesn't hide the other workers."""


class Channel:
    """One end of a Unix stream socket that speaks in frames.

    `send` and `receive` wait; `post`, `flush` and `feed` never do. Sending is safe from several threads;
    receiving is for one thread at a time.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = FrameReader(connection)
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
    yield _Piece(data=memoryview(HEADER.pack(len(data), len(fds))))
    for start in range(0, len(fds), BATCH):
        yield _Piece(data=memoryview(b"\0"), fds=fds[start : start + BATCH])
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
        if error.errno in {
            errno.EBADF,
            errno.ENOTSOCK,
        }:  # other code has closed it: nobody hears this
            raise BrokenPipeError(*error.args) from None
        raise
