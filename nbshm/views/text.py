"""A run as lines of text, while it runs: for a terminal, a captured cell, a redirected stdout."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from nbshm.events import Cleared, Display, Ended, Event, Note, Output, Progress, Stream
from nbshm.failures.reports import RankFailure, Stopped
from nbshm.views.lines import FoldedLine, Folder, Line, LineAssembler
from nbshm.views.outputs import Bundle, clear, publish, replace_output
from nbshm.views.paces import Pace, Paces
from nbshm.words import progress_in_words, ranks_in_words

_PROGRESS_SECONDS = 1.0  # between two lines about one loop of one rank


@dataclass(slots=True, kw_only=True)
class _Told:
    """What was told last of a loop, and when; nothing yet of one that may be over soon."""

    at: float
    text: str = ""


class TextView:
    """Writes each line to this process's own stdout or stderr, with the ranks that said it."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._nprocs = 1
        self._assembler = LineAssembler()
        self._folder = Folder(1)
        self._paces = Paces(1)
        self._told: dict[tuple[object, ...], _Told] = {}

    def begin(self, nprocs: int, *, stop: Callable[[], None]) -> None:
        """Get ready for a run of that many ranks; `stop` ends it, from any thread."""
        del stop  # text has no button: the kernel's interrupt is there
        self._nprocs = nprocs
        self._folder = Folder(nprocs)
        self._paces = Paces(nprocs)

    def show(self, event: Event) -> None:
        """Write what can be written now; equal lines of several ranks wait 50 ms for each other."""
        match event:
            case Output():
                self._take(self._assembler.feed(event))
            case Ended(rank=rank):
                self._take(self._assembler.flush(rank))
            case Note():
                self._note(event)
            case Progress():
                self._progress(event)
            case Display():
                self._display(event)
            case Cleared(wait=wait) if self._nprocs == 1:  # of several ranks one can't take away the others'
                self._write(self._folder.rest())
                clear(wait=wait)
            case _:
                pass
        self._write(self._folder.due(self._clock()))

    def finish(self, *, failures: Sequence[RankFailure] = (), stopped: Sequence[Stopped] = ()) -> None:
        """Write the rest; what failed is told by the exception that follows."""
        del failures, stopped
        self._take(self._assembler.flush_all())
        self._write(self._folder.rest())

    def shows_failures(self, failures: Sequence[RankFailure]) -> bool:
        """Leave them to the exception."""
        del failures
        return False

    def _take(self, lines: Iterable[Line]) -> None:
        now = self._clock()
        for line in lines:
            self._folder.add(line, now)

    def _note(self, note: Note) -> None:
        if note.rank is None:
            self._write(self._folder.rest())
            _put("stderr", f"nbshm: {note.text}\n")
        else:
            self._take([Line(rank=note.rank, stream="stderr", text=f"nbshm: {note.text}")])

    def _progress(self, progress: Progress) -> None:
        """Tell of a loop that lasts, now and then; of one that ranks share, what all of them have done."""
        now = self._clock()
        self._paces.add(progress, now)
        pace = progress if progress.shared is None else self._paces.claim(progress.shared)
        text = progress_in_words(pace.label, pace.done, pace.total)
        key = (progress.rank, progress.loop) if progress.shared is None else ("claim", progress.shared)
        told = self._told.setdefault(key, _Told(at=now))
        if text == told.text or (now - told.at < _PROGRESS_SECONDS and not _is_the_end(progress, pace, told)):
            return
        told.at, told.text = now, text
        if progress.shared is None:
            self._take([Line(rank=progress.rank, stream="stderr", text=text)])
        else:
            self._write(self._folder.rest())
            _put("stderr", f"{text}\n")

    def _display(self, event: Display) -> None:
        bundle = Bundle(data=event.data, metadata=event.metadata)
        display_id = self._display_id(event)
        if event.update and display_id is not None:
            replace_output(bundle, display_id=display_id)
        elif not event.update:
            self._take(self._assembler.flush(event.rank, "stdout"))
            self._write(self._folder.rest())
            if self._nprocs > 1:
                _put("stdout", f"[{ranks_in_words([event.rank])}]\n")
            publish(bundle, display_id=display_id)

    def _display_id(self, event: Display) -> str | None:
        """Return the identity of a display, which is the rank's own where there are several."""
        if event.display_id is None or self._nprocs == 1:
            return event.display_id
        return f"{event.display_id} of {ranks_in_words([event.rank])}"

    def _write(self, lines: Iterable[FoldedLine]) -> None:
        for stream, group in groupby(lines, key=lambda line: line.stream):
            _put(stream, "".join(f"{self._prefix(line)}{line.text}\n" for line in group))

    def _prefix(self, line: FoldedLine) -> str:
        return f"[{ranks_in_words(line.ranks)}] " if self._nprocs > 1 else ""


def _is_the_end(progress: Progress, pace: Progress | Pace, told: _Told) -> bool:
    """Tell whether a loop that was told is over: one that ranks share is when all of it is done."""
    return progress.ended and told.text != "" and (progress.shared is None or pace.done == pace.total)


def _put(stream: Stream, text: str) -> None:
    file = sys.stdout if stream == "stdout" else sys.stderr
    file.write(text)
    file.flush()
