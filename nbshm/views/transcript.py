"""Everything that the ranks of a run wrote, in memory while it is little, on disk when it is much."""

from __future__ import annotations

import tempfile
import threading
import weakref
from pathlib import Path
from typing import IO

from nbshm.events import Output

_IN_MEMORY = 64 << 10  # bytes of a rank


class Transcript:
    """Keeps the whole output of each rank in the order of arrival, to be read by rank.

    The files have no name (they are unlinked at once where the system can't do without), so nothing of them
    can be left behind; they are gone with the transcript.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = None if directory is None else str(directory)
        self._files: dict[int, IO[bytes]] = {}
        self._moving = threading.Lock()  # a file has one position, for who writes and for who reads
        self._finalizer = weakref.finalize(self, _close_all, self._files)

    def write(self, chunk: Output) -> None:
        """Add what a rank wrote."""
        file = self._files.get(chunk.rank)
        if file is None:
            file = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=self._directory)  # noqa: SIM115  # closed by the finalizer
            self._files[chunk.rank] = file
        with self._moving:
            file.write(chunk.text.encode(errors="surrogatepass"))

    def read(self, rank: int) -> str:
        """Return everything that a rank wrote to its stdout and stderr."""
        file = self._files.get(rank)
        if file is None:
            return ""
        with self._moving:
            file.seek(0)
            try:
                return file.read().decode(errors="surrogatepass")
            finally:
                file.seek(0, 2)

    def close(self) -> None:
        """Forget the output and give the disk space back."""
        self._finalizer()
        self._files.clear()


def _close_all(files: dict[int, IO[bytes]]) -> None:
    for file in files.values():
        file.close()
