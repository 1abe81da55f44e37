"""The story of a run: what each rank said, gathered from events, bounded, told in rank order.

A rank's text and displays come first, then its stderr: the two come over different pipes, so their order
among each other is chance, and nothing in a saved story may differ between two equal runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nbshm.events import Cleared, Display, Event, Note, Output, Stream
from nbshm.failures.reports import RankFailure, Stopped
from nbshm.failures.stories import in_one_line, stop_in_words
from nbshm.views.excerpt import Excerpt, Rich, Text
from nbshm.views.folding import Entry, Passage, Voice, fold
from nbshm.views.lines import Line, LineAssembler
from nbshm.views.tails import Tails


class _RankStory:
    """What one rank has said so far."""

    def __init__(self) -> None:
        self.streams: dict[Stream, Excerpt] = {"stdout": Excerpt(), "stderr": Excerpt()}
        self.notes: list[str] = []
        self.verdict: str | None = None
        self.last_line = ""
        self.clear_next = False

    def clear(self) -> None:
        self.streams = {"stdout": Excerpt(), "stderr": Excerpt()}
        self.clear_next = False

    def add(self, stream: Stream, piece: Text | Rich, key: str | None = None) -> None:
        if self.clear_next:
            self.clear()
        self.streams[stream].add(piece, key)
        if isinstance(piece, Text) and piece.text.strip():
            self.last_line = piece.text

    def entries(self) -> Iterator[Entry]:
        yield from (_text("note", note) for note in self.notes)
        for stream, excerpt in self.streams.items():
            yield from (Entry(voice=stream, piece=piece) for piece in excerpt.pieces())
        if self.verdict is not None:
            yield _text("verdict", self.verdict)


class Story:
    """Gathers the events of a run and tells them as passages."""

    def __init__(self, nprocs: int) -> None:
        self.nprocs = nprocs
        self._ranks = {rank: _RankStory() for rank in range(nprocs)}
        self.tails = Tails(nprocs)
        self._assembler = LineAssembler()
        self._notes: list[str] = []

    def add(self, event: Event) -> None:
        """Take the next event; those that say nothing to a reader are passed over."""
        match event:
            case Output():
                self._add_lines(event.rank, self._assembler.feed(event))
            case Display():
                self._add_display(event)
            case Cleared(rank=rank, wait=wait):
                self._clear(rank, wait=wait)
            case Note(rank=rank, text=text):
                notes = self._notes if rank is None else self._ranks[rank].notes
                notes += [] if text in notes else [text]
            case _:
                pass

    def finish(self, failures: Sequence[RankFailure] = (), stopped: Sequence[Stopped] = ()) -> None:
        """Close the story: unfinished lines are whole now; of a failed run each rank's fate is told."""
        for rank in self._ranks:
            self._add_lines(rank, self._assembler.flush(rank))
        if failures or stopped:
            for failure in failures:
                self._ranks[failure.rank].verdict = in_one_line(failure)
            for stop in stopped:
                self._ranks[stop.rank].verdict = stop_in_words(stop)

    def last_line(self, rank: int) -> str:
        """Return what the rank said last, also if that line has no end yet."""
        return self._assembler.unfinished(rank) or self._ranks[rank].last_line

    def passages(self) -> list[Passage]:
        """Tell the story: the run's own notes, then the ranks in order, folded."""
        notes = [Passage(ranks=(), entry=_text("note", note)) for note in self._notes]
        return [*notes, *fold({rank: list(story.entries()) for rank, story in self._ranks.items()})]

    def _add_lines(self, rank: int, lines: Sequence[Line]) -> None:
        if not lines:
            return
        self.tails.add(rank, lines)
        for line in lines:
            self._ranks[rank].add(line.stream, Text(text=line.text))

    def _add_display(self, event: Display) -> None:
        rich = Rich(data=event.data, metadata=event.metadata)
        if event.update:
            if event.display_id is not None:
                self._ranks[event.rank].streams["stdout"].replace(event.display_id, rich)
            return
        self._add_lines(event.rank, self._assembler.flush(event.rank, "stdout"))
        self._ranks[event.rank].add("stdout", rich, event.display_id)

    def _clear(self, rank: int, *, wait: bool) -> None:
        self._assembler.flush(rank)
        if wait:
            self._ranks[rank].clear_next = True
        else:
            self._ranks[rank].clear()


def _text(voice: Voice, text: str) -> Entry:
    return Entry(voice=voice, piece=Text(text=text))
