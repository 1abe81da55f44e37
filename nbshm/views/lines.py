"""Chunks of output as whole lines, and equal lines of several ranks as one."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from nbshm.events import Output, Stream

FOLD_SECONDS = 0.05
_LONGEST_LINE = 1 << 20  # characters; a line without end must not grow in memory for ever


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A whole line of one rank, without its line end."""

    rank: int
    stream: Stream
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedLine:
    """A line that these ranks wrote at about the same time."""

    ranks: tuple[int, ...]
    stream: Stream
    text: str


class LineAssembler:
    """Puts the chunks of each rank and stream together to whole lines.

    A carriage return goes back to the start of the line, as a terminal does, so of a progress bar only the
    last state becomes a line.
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[int, Stream], str] = {}

    def feed(self, chunk: Output) -> list[Line]:
        """Take a chunk and return the lines that it completes."""
        key = chunk.rank, chunk.stream
        *whole, rest = (self._pending.get(key, "") + chunk.text).split("\n")
        rest = _last_state(rest)
        while len(rest) > _LONGEST_LINE:
            whole.append(rest[:_LONGEST_LINE])
            rest = rest[_LONGEST_LINE:]
        self._pending[key] = rest
        return [_line(chunk.rank, chunk.stream, text) for text in whole]

    def unfinished(self, rank: int) -> str:
        """Return what a rank has written to stdout or stderr since its last line end."""
        streams: tuple[Stream, ...] = ("stderr", "stdout")
        return next(
            (rest for stream in streams if (rest := self._pending.get((rank, stream), ""))), ""
        ).rstrip("\r")

    def flush(self, rank: int, *streams: Stream) -> list[Line]:
        """Return a rank's lines that have no line end yet, of all streams unless some are named."""
        wanted = [key for key in self._pending if key[0] == rank and (not streams or key[1] in streams)]
        rests = [(stream, self._pending.pop((rank, stream))) for _, stream in wanted]
        return [_line(rank, stream, rest) for stream, rest in rests if rest]

    def flush_all(self) -> list[Line]:
        """Return the last lines of all ranks."""
        return [line for rank in sorted({rank for rank, _ in self._pending}) for line in self.flush(rank)]


def _line(rank: int, stream: Stream, text: str) -> Line:
    return Line(rank=rank, stream=stream, text=_last_state(text).rstrip("\r"))


def _last_state(text: str) -> str:
    """Keep what stands after the last carriage return that something follows."""
    if "\r" not in text:
        return text
    body = text.rstrip("\r")
    state = body.rpartition("\r")[2]
    return state + "\r" if len(body) < len(text) else state


@dataclass(slots=True, kw_only=True)
class _Held:
    """A line that waits for other ranks to say the same."""

    stream: Stream
    text: str
    until: float
    position: int
    ranks: set[int] = field(default_factory=set)


def _position(held: _Held) -> int:
    return held.position


class Folder:
    """Holds each line for 50 ms and joins the equal lines of other ranks to it, in the order of each rank."""

    def __init__(self, nprocs: int) -> None:
        self._nprocs = nprocs
        self._held: deque[_Held] = deque()
        self._by_text: dict[tuple[Stream, str], list[_Held]] = {}
        self._last_of: dict[int, int] = {}
        self._count = 0

    def add(self, line: Line, now: float) -> None:
        """Take a line that arrived at that time (seconds of a monotonic clock)."""
        same = self._by_text.setdefault((line.stream, line.text), [])
        place = bisect_right(same, self._last_of.get(line.rank, -1), key=_position)
        if place < len(same):
            held = same[place]
        else:
            held = _Held(stream=line.stream, text=line.text, until=now + FOLD_SECONDS, position=self._count)
            self._count += 1
            self._held.append(held)
            same.append(held)
        held.ranks.add(line.rank)
        self._last_of[line.rank] = held.position

    def due(self, now: float) -> Iterator[FoldedLine]:
        """Yield the lines that have waited long enough, or that all ranks have said."""
        while self._held and (self._held[0].until <= now or len(self._held[0].ranks) == self._nprocs):
            yield self._release()

    def rest(self) -> Iterator[FoldedLine]:
        """Yield all that is still held."""
        while self._held:
            yield self._release()

    def _release(self) -> FoldedLine:
        held = self._held.popleft()
        same = self._by_text[held.stream, held.text]
        same.pop(0)
        if not same:
            del self._by_text[held.stream, held.text]
        return FoldedLine(ranks=tuple(sorted(held.ranks)), stream=held.stream, text=held.text)
