"""Listening to one worker: its two pipes, its channel and its end, turned into events.

What was printed before an event is told before it: the pipes are read after the channel, and told first.
Displays have marks in the text (see `nbshm.wire.markers`) and are told exactly where they stand.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterable, Iterator

from nbshm.events import Cleared, Display, Ended, Event, Note, Output, Result, Stream
from nbshm.failures.reports import Circumstances
from nbshm.processes.pipes import OutputPipe
from nbshm.processes.workers import Worker
from nbshm.wire.markers import Merger, Piece
from nbshm.wire.receiving import DescriptorsLost, Frame


class Listener:
    """Everything that one worker says, in order."""

    def __init__(self, worker: Worker, *, token: str) -> None:
        self.worker = worker
        self.ended = False
        self._descriptors: list[int] = []
        self._pipes: dict[Stream, OutputPipe] = {
            "stdout": OutputPipe(worker.stdout),
            "stderr": OutputPipe(worker.stderr),
        }
        self._in_text: Merger[Display | Cleared] = Merger(token)

    def open_descriptors(self) -> set[int]:
        """Return the descriptors at which something may happen yet."""
        if self.ended:
            return set()
        pipes = {pipe.fd for pipe in self._pipes.values() if not pipe.ended}
        channel = set() if self.worker.channel.ended else {self.worker.channel.fileno()}
        return {*pipes, *channel, self.worker.sentinel}

    def listen(self) -> list[Event]:
        """Return what has been said since the last time."""
        exitcode = self.worker.exitcode  # asked first: nothing is said after it
        frames = self._frames()
        events = [*self._printed()]
        events += [event for frame in frames for event in self._said(frame)]
        return events if exitcode is None else [*events, *self._end(exitcode)]

    def take_descriptors(self) -> list[int]:
        """Hand over the descriptors that came with the result."""
        taken, self._descriptors = self._descriptors, []
        return taken

    def close(self) -> None:
        """Close descriptors that nobody has taken."""
        for fd in self.take_descriptors():
            os.close(fd)

    def _printed(self) -> Iterator[Event]:
        stderr = self._pipes["stderr"].read()  # first: what was printed before it is in the other pipe by now
        yield from self._place(self._in_text.text(self._pipes["stdout"].read()))
        yield from self._text("stderr", stderr)

    def _frames(self) -> list[Frame | Note]:
        try:
            return [*self.worker.channel.feed()]
        except DescriptorsLost as error:
            return [Note(rank=self.worker.rank, text=f"a message was lost: {error.strerror}")]

    def _said(self, frame: Frame | Note) -> Iterator[Event]:
        if isinstance(frame, Note):
            yield frame
            return
        event = _unpickled(frame, self.worker.rank)
        if isinstance(event, Result):
            self._descriptors += frame.fds
        else:
            _close_all(frame.fds)
        if isinstance(event, Display | Cleared):
            yield from self._place(self._in_text.event(event))
        else:
            yield event

    def _end(self, exitcode: int) -> Iterator[Event]:
        self.ended = True
        yield from self._place(self._in_text.finish())
        for stream in self._pipes:
            yield from self._text(stream, b"", final=True)
        yield Ended(
            rank=self.worker.rank,
            exitcode=exitcode,
            is_lost=self.worker.is_lost,
            seconds=time.monotonic() - self.worker.born,
            last_line=self.worker.place,
            dump=self.worker.last_dump() if exitcode < 0 else None,
            circumstances=Circumstances(is_unheard=self.worker.is_unheard),
        )

    def _place(self, pieces: Iterable[Piece[Display | Cleared]]) -> Iterator[Event]:
        for piece in pieces:
            if isinstance(piece, bytes):
                yield from self._text("stdout", piece)
            else:
                yield piece

    def _text(self, stream: Stream, data: bytes, *, final: bool = False) -> Iterator[Output]:
        text = self._pipes[stream].decode(data, final=final)
        if text:
            yield Output(rank=self.worker.rank, stream=stream, text=text)


def _unpickled(frame: Frame, rank: int) -> Event:
    try:
        event: Event = pickle.loads(frame.payload)
    except Exception as error:  # noqa: BLE001  # what a worker sends can't be allowed to end the supervision
        return Note(rank=rank, text=f"a message could not be read: {type(error).__name__}: {error}")
    return event


def _close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)
