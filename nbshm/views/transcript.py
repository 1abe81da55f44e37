"""Everything that the ranks of a run wrote: what is little in memory, what follows on disk."""

from __future__ import annotations

import codecs
import tempfile
import threading
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from nbshm.events import Output

_IN_MEMORY = 64 << 10  # bytes of a rank


class Transcript:
    """Keeps the whole output of each rank in the order of arrival, to be read by rank.

    The files have no name (they are unlinked at once where the system can't do without), so nothing of them
    can be left behind; they are gone with the transcript. Where the disk is full, the output says that it
    ends there; a run does not fail for it.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = None if directory is None else str(directory)
        self._records: dict[int, _Record] = {}
        self._moving = threading.Lock()  # a file has one position, for who writes and for who reads
        self._finalizer = weakref.finalize(self, _close_all, self._records)

    def write(self, chunk: Output) -> None:
        """Add what a rank wrote."""
        record = self._records.setdefault(chunk.rank, _Record(directory=self._directory))
        with self._moving:
            record.write(chunk.text.encode(errors="surrogatepass"))

    def read(self, rank: int) -> str:
        """Return everything that a rank wrote to its stdout and stderr."""
        record = self._records.get(rank)
        if record is None:
            return ""
        with self._moving:
            return _decoded(record.read()) + record.cut

    def close(self) -> None:
        """Forget the output and give the disk space back."""
        self._finalizer()
        self._records.clear()


@dataclass(slots=True, kw_only=True)
class _Record:
    """What one rank wrote; `cut` says so if the disk had no room for the rest."""

    directory: str | None
    beginning: bytearray = field(default_factory=bytearray)
    rest: IO[bytes] | None = None
    cut: str = ""

    def write(self, data: bytes) -> None:
        room = _IN_MEMORY - len(self.beginning)
        self.beginning += data[:room]
        if len(data) > room and not self.cut:
            try:
                self._write_rest(data[room:])
            except OSError as error:
                self.cut = f"\n[what followed could not be kept: {error.strerror}]\n"

    def read(self) -> bytes:
        if self.rest is None:
            return bytes(self.beginning)
        self.rest.seek(0)
        try:
            return bytes(self.beginning) + self.rest.read()
        finally:
            self.rest.seek(0, 2)

    def _write_rest(self, data: bytes) -> None:
        if self.rest is None:
            self.rest = tempfile.TemporaryFile(buffering=0, dir=self.directory)  # noqa: SIM115  # closed by the finalizer
        while data:
            data = data[self.rest.write(data) :]


def _decoded(data: bytes) -> str:
    """Return the text that bytes stand for; a full disk may have cut the last character in two."""
    return codecs.getincrementaldecoder("utf-8")("surrogatepass").decode(data)


def _close_all(records: dict[int, _Record]) -> None:
    for record in records.values():
        if record.rest is not None:
            record.rest.close()
