"""The stream of a program's values, read one after the other, on behind those that can't be rebuilt."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from mmap import mmap
from typing import Any, BinaryIO

from nbshm.failures.chains import safe_message
from nbshm.garbage import collection_put_off
from nbshm.worker.passing_over import MemoUnpickler, memo_behind


class CannotRebuild(pickle.UnpicklingError):
    """A value that was pickled can't be unpickled here; the message is a sentence and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """A value that could not be rebuilt: where its pickle begins, in the file and behind which object."""

    start: int
    milestone: list[Any]
    sentence: str


class ValueStream:
    """The values of a program in a file, with one memo for all of them (see `jobs.Program`)."""

    def __init__(self, file: BinaryIO | mmap) -> None:
        self._file = file
        self._unpickler: pickle.Unpickler | MemoUnpickler = pickle.Unpickler(file)
        self._failed: _Failed | None = None

    def load(self, label: str) -> Any:
        """Return the next value, which is told of by that label.

        Raises
        ------
        CannotRebuild
            Unpickling it has raised. The next call returns the value behind it, where what the two have in
            common is stood in for.

        """
        if self._failed is not None:
            self._unpickler = self._behind(self._failed)
            self._failed = None
        milestone = self._unpickler.load()
        start = self._file.tell()
        try:
            with collection_put_off():
                return self._unpickler.load()
        except Exception as error:  # noqa: BLE001  # whatever a value's own unpickling raises
            reason = CannotRebuild(_in_words(label, error))
            self._failed = _Failed(start=start, milestone=milestone, sentence=str(reason))
            # With the frames of what was raised, so that the report names the line; its words are in these.
            raise reason.with_traceback(error.__traceback__) from None

    def _behind(self, failed: _Failed) -> MemoUnpickler:
        """Return an unpickler that goes on behind a value, with a memo as if that had been unpickled."""
        memo: dict[int, Any] = self._unpickler.memo.copy()
        known = next(place for place, value in memo.items() if value is failed.milestone) + 1
        before = {place: value for place, value in memo.items() if place < known}
        self._file.seek(failed.start)
        return MemoUnpickler(self._file, memo_behind(self._file, before, failed.sentence))


def _in_words(label: str, error: Exception) -> str:
    reason = f"{type(error).__name__}: {safe_message(error)}".rstrip(".")
    remedy = "Make it where it is used, or mend how its class is unpickled."
    return f"{label!r} can't be rebuilt in another process: {reason}. {remedy}"
