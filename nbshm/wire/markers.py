"""The order of a rank's text and its displays, held by marks in the text.

Text comes over a pipe and displays over a socket, so their arrival says nothing about their order. A worker
that displays something first writes a mark into its standard output, then sends the event; the reader takes
the marks out again and puts the k-th display where the k-th mark was. So `print`, `display`, `print` is
saved in that order, always. The token is a random one for each run: no program's own output holds it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeAlias, TypeVar

E = TypeVar("E")

Piece: TypeAlias = bytes | E

# An "application program command" of ECMA-48: a terminal that meets a mark after all shows nothing of it.
_BEGIN = b"\x1b_"
_END = b"\x1b\\"


def mark(token: str, number: int) -> bytes:
    """Return the mark for a rank's display of that number; they count from 0."""
    return _opening(token) + str(number).encode() + _END


def split_at_marks(text: bytes, token: str) -> tuple[list[bytes | int], bytes]:
    """Split text into its pieces and the numbers of the marks between them.

    Also returns the end of the text if a mark may begin there: to be put before the text that comes next.
    """
    opening = _opening(token)
    pieces: list[bytes | int] = []
    while (begin := text.find(opening)) >= 0:
        end = text.find(_END, begin)
        if end < 0:
            break
        pieces += [text[:begin], int(text[begin + len(opening) : end])]
        text = text[end + len(_END) :]
    kept = _beginning_of_a_mark(text, opening)
    pieces.append(text[: len(text) - len(kept)])
    return [piece for piece in pieces if piece != b""], kept


class Merger(Generic[E]):
    """Brings the text and the displays of one rank into the order in which the rank wrote them."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._rest = b""
        self._read: deque[bytes | int] = deque()
        self._events: deque[E] = deque()
        self._given = 0

    def text(self, chunk: bytes) -> Iterator[Piece[E]]:
        """Take bytes read from the rank's standard output; yield what can be told now."""
        pieces, self._rest = split_at_marks(self._rest + chunk, self._token)
        self._read += pieces
        yield from self._in_order()

    def event(self, event: E) -> Iterator[Piece[E]]:
        """Take an event that has a mark; yield what can be told now."""
        self._events.append(event)
        yield from self._in_order()

    def finish(self) -> Iterator[Piece[E]]:
        """Yield what is left when the rank has ended, also if its last event never came."""
        self._read.append(self._rest)
        self._rest = b""
        while self._read or self._events:
            yield from self._in_order()
            if self._read:
                self._read.popleft()
            elif self._events:
                yield self._events.popleft()

    def _in_order(self) -> Iterator[Piece[E]]:
        while self._read:
            piece = self._read[0]
            if isinstance(piece, bytes):
                if piece:
                    yield piece
            elif self._given + len(self._events) <= piece:
                return  # the mark is here before its event
            else:
                yield from self._up_to(piece)
            self._read.popleft()

    def _up_to(self, number: int) -> Iterator[E]:
        while self._given <= number:
            self._given += 1
            yield self._events.popleft()


def _opening(token: str) -> bytes:
    return _BEGIN + f"nbshm {token} ".encode()


def _beginning_of_a_mark(text: bytes, opening: bytes) -> bytes:
    """Return the end of the text from where an unfinished mark begins, b"" if there is none."""
    if (begin := text.find(opening)) >= 0:
        return text[begin:]
    for length in range(min(len(opening) - 1, len(text)), 0, -1):
        if text.endswith(opening[:length]):
            return text[-length:]
    return b""
