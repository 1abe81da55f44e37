"""What is kept of a rank's output for showing: the first pieces and the last, within bounds.

The whole is kept elsewhere (`nbshm.views.transcript`); an excerpt never grows, however long a run prints.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

KEPT_LINES = 100  # at each end
KEPT_BYTES = 64 << 10  # of text at each end of each stream: 256 KiB a rank
KEPT_RICH_BYTES = 8 << 20  # of figures and the like, at each end


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A line of text without its line end."""

    text: str

    @property
    def nbytes(self) -> int:
        """What the line counts for; characters stand for bytes, which is near enough for a bound."""
        return len(self.text) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rich:
    """A rich output: a MIME bundle."""

    data: dict[str, Any]
    metadata: dict[str, Any]

    @property
    def nbytes(self) -> int:
        """The size of the bundle's texts and encoded images."""
        return sum(len(value) for value in self.data.values() if isinstance(value, (str, bytes)))

    @property
    def plain(self) -> str:
        """The text that stands for the output where nothing richer can."""
        return str(self.data.get("text/plain", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Stands for the pieces that were left out between the first and the last."""

    pieces: int


Piece: TypeAlias = Text | Rich | Gap


@dataclass(slots=True)
class _Budget:
    """What may still be kept at one end."""

    lines: int = KEPT_LINES
    text: int = KEPT_BYTES
    rich: int = KEPT_RICH_BYTES

    def charge(self, piece: Text | Rich, times: int = 1) -> None:
        """Account for a piece; `times=-1` gives back what it was charged."""
        self.lines -= times
        if isinstance(piece, Text):
            self.text -= times * piece.nbytes
        else:
            self.rich -= times * piece.nbytes

    @property
    def overdrawn(self) -> bool:
        """Whether more was charged than there is."""
        return min(self.lines, self.text, self.rich) < 0


@dataclass(slots=True, kw_only=True)
class _Kept:
    """A piece and the key under which a later one replaces it."""

    piece: Text | Rich
    key: str | None


class Excerpt:
    """Keeps the first and the last pieces of one stream and counts those between them."""

    def __init__(self) -> None:
        self._first: list[_Kept] = []
        self._last: deque[_Kept] = deque()
        self._first_budget = _Budget()
        self._last_budget = _Budget()
        self._left_out = 0

    def add(self, piece: Text | Rich, key: str | None = None) -> None:
        """Take the next piece."""
        kept = _Kept(piece=_shortened(piece), key=key)
        if not self._first_budget.overdrawn:
            self._first_budget.charge(kept.piece)
        if not self._first_budget.overdrawn:
            self._first.append(kept)
            return
        self._last.append(kept)
        self._last_budget.charge(kept.piece)
        while self._last_budget.overdrawn and len(self._last) > 1:
            self._last_budget.charge(self._last.popleft().piece, times=-1)
            self._left_out += 1

    def replace(self, key: str, piece: Text | Rich) -> None:
        """Put a piece in the place of those that were added under that key."""
        for kept in (*self._first, *self._last):
            if kept.key == key:
                kept.piece = piece

    def pieces(self) -> Iterator[Piece]:
        """Yield what is kept, with the gap where it is."""
        yield from (kept.piece for kept in self._first)
        if self._left_out:
            yield Gap(pieces=self._left_out)
        yield from (kept.piece for kept in self._last)


def _shortened(piece: Text | Rich) -> Text | Rich:
    """Cut the middle out of a line that alone is longer than all that is kept."""
    if isinstance(piece, Rich) or piece.nbytes <= KEPT_BYTES:
        return piece
    half = KEPT_BYTES // 2 - KEPT_LINES  # room for the words between
    cut = len(piece.text) - 2 * half
    return Text(text=f"{piece.text[:half]} ... {cut} characters left out ... {piece.text[-half:]}")
