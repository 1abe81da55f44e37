"""The last lines of each rank, and of all ranks together, while they run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from nbshm.views.ansi import ansi_to_html, escape
from nbshm.views.lines import Line
from nbshm.words import ranks_in_words

KEPT_LINES = 200
KEPT_BYTES = 64 << 10  # characters stand for bytes, which is near enough for a bound

STYLE = """
.nbshm-live .tail{max-height:18em;overflow:auto;display:flex;flex-direction:column-reverse;
border-top:1px solid var(--jp-border-color2,#bdbdbd)}
.nbshm-live .tail pre{margin:0;padding:0;font:inherit;line-height:1.3;color:inherit;background:none;
border:none;white-space:pre-wrap;overflow-wrap:anywhere}
.nbshm-live .tail .stderr{background:var(--jp-rendermime-error-background,rgba(255,0,0,.12))}
"""


class _Tail:
    """The last lines of one source, within bounds."""

    def __init__(self) -> None:
        self.lines: deque[Line] = deque()
        self._room = KEPT_BYTES

    def add(self, lines: Sequence[Line]) -> None:
        for line in lines[-KEPT_LINES:]:
            kept = line if len(line.text) < KEPT_BYTES else replace(line, text=line.text[-KEPT_BYTES + 1 :])
            self.lines.append(kept)
            self._room -= len(kept.text) + 1
            while self._room < 0 or len(self.lines) > KEPT_LINES:
                self._room += len(self.lines.popleft().text) + 1


class Tails:
    """Keeps what is shown of the ranks' output while they run; it never grows, however much they print."""

    def __init__(self, nprocs: int) -> None:
        self._nprocs = nprocs
        self._ranks = [_Tail() for _ in range(nprocs)]
        self._all = _Tail()
        self._changed: set[int] = set()

    def add(self, rank: int, lines: Sequence[Line]) -> None:
        """Take a rank's next lines."""
        self._ranks[rank].add(lines)
        self._all.add(lines)
        self._changed.add(rank)

    def take_changed(self) -> list[int]:
        """Return the ranks that have said something since this was asked last."""
        changed, self._changed = sorted(self._changed), set()
        return changed

    def of(self, rank: int) -> str:
        """Write a rank's last lines as HTML in which nothing can run."""
        return _html((line.stream, line.text) for line in self._ranks[rank].lines)

    def of_all(self) -> str:
        """Write the last lines of all ranks, in the order in which they came; equal neighbours are one."""
        return _html(self._labelled())

    def _labelled(self) -> Iterator[tuple[str, str]]:
        for (stream, text), same in groupby(self._all.lines, key=lambda line: (line.stream, line.text)):
            name = f"[{ranks_in_words(line.rank for line in same)}] " if self._nprocs > 1 else ""
            yield stream, f"{name}{text}"


def _html(lines: Iterator[tuple[str, str]]) -> str:
    blocks = (
        f'<pre class="{escape(stream)}">{ansi_to_html(chr(10).join(text for _, text in group))}</pre>'
        for stream, group in groupby(lines, key=lambda line: line[0])
    )
    return f'<div class="tail jp-RenderedText"><div>{"".join(blocks)}</div></div>'
