"""Reading what a worker prints: bytes from a pipe, text without a character cut in two."""

from __future__ import annotations

import codecs
import os

_CHUNK = 1 << 16
_CHUNKS = 16
"""Chunks that are read at a time: as much as a pipe may hold (1 MiB, where it has been enlarged)."""


class OutputPipe:
    """The read end of a pipe that a worker prints to. It never waits."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.ended = False
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="backslashreplace")

    def read(self) -> bytes:
        """Return what is there, at most what a pipe can hold: some print without end."""
        chunks = []
        for _ in range(_CHUNKS):
            chunk = self._read_chunk()
            if not chunk:
                break
            chunks.append(chunk)
        return b"".join(chunks)

    def decode(self, data: bytes, *, final: bool = False) -> str:
        """Return the text of bytes that came from here; an unfinished character waits for the next ones."""
        return self._decoder.decode(data, final)

    def _read_chunk(self) -> bytes:
        try:
            chunk = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return b""
        self.ended = not chunk
        return chunk
