"""The frames of a traceback as data: the lines around each, what is marked in them, the values of its names.

Nothing here needs more than the standard library.
"""

from __future__ import annotations

import itertools
import linecache
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType, TracebackType
from typing import TypeAlias

from nbshm.own_code import is_library
from nbshm.words import line_in_words

AT_EACH_END = 50
"""Frames kept at each end of a traceback: of a runaway recursion more say nothing new."""

_LINES_AROUND = 2
_MOST_AGAIN = 2  # of a line that calls itself: the values of names in these may tell something

Values: TypeAlias = tuple[tuple[str, str], ...]
"""Names and short descriptions of their values."""

Describe: TypeAlias = Callable[[Sequence[FrameType]], Sequence[Values]]
"""Describes the values of names in each of the frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One line on the way to an exception; `cell` is the execution count where a notebook cell holds it.

    `source` are the lines around it, the first of which has the number `first`. `mark` are the columns, in
    this frame's line, from which and up to which the expression goes that was being evaluated. `values` are
    those of names in the person's own code, described in short.
    """

    filename: str
    line: int
    function: str
    text: str
    cell: int | None = None
    is_library: bool = False
    source: tuple[str, ...] = field(default=(), repr=False)
    first: int = 0
    mark: tuple[int, int] | None = field(default=None, repr=False)
    values: Values = field(default=(), repr=False)

    @property
    def place(self) -> str:
        """Where this is, as a person says it: `In [7] line 5`, or `tools.py line 12`."""
        where = line_in_words(self.line, self.cell)
        return where if self.cell is not None else f"{os.path.basename(self.filename)} {where}"  # noqa: PTH119  # `<string>` is no path


def folded(frames: Iterable[Frame]) -> Iterator[tuple[list[Frame], int]]:
    """Yield frames to show, each time with how many follow that are the same line once more.

    Of a recursion in one line the first stands for all.
    """
    for _, alike in itertools.groupby(frames, key=lambda frame: (frame.filename, frame.line, frame.function)):
        first, *again = alike
        yield ([first], len(again)) if len(again) > _MOST_AGAIN else ([first, *again], 0)


def nothing_described(frames: Sequence[FrameType]) -> Sequence[Values]:
    """Describe no values."""
    return [() for _ in frames]


def frames_of(
    links: TracebackType | None, cells: Mapping[str, int], describe: Describe = nothing_described
) -> tuple[Frame, ...]:
    """Extract the frames of a traceback; `cells` are the numbers of cells by the file names of their code."""
    walked = list(walk(links))
    if len(walked) > 2 * AT_EACH_END:
        walked = walked[:AT_EACH_END] + walked[-AT_EACH_END:]
    own = [link.tb_frame for link in walked if not is_library(link.tb_frame.f_code.co_filename)]
    described = dict(zip(map(id, own), describe(own), strict=True))
    return tuple(_frame(link, cells, described.get(id(link.tb_frame), ())) for link in walked)


def walk(link: TracebackType | None) -> Iterator[TracebackType]:
    """Yield the links of a traceback, the outermost first."""
    while link is not None:
        yield link
        link = link.tb_next


def function_of(code: CodeType) -> str:
    """Return the name of the function that code belongs to: of a cell's own `<module>`, as of a module's."""
    return "<module>" if code.co_name.startswith("<cell line:") else code.co_name  # before IPython 8.6


def _frame(link: TracebackType, cells: Mapping[str, int], values: Values) -> Frame:
    code, line = link.tb_frame.f_code, link.tb_lineno or 0  # None for code without line numbers
    lines = linecache.getlines(code.co_filename, link.tb_frame.f_globals)
    first = max(1, line - _LINES_AROUND)
    return Frame(
        filename=code.co_filename,
        line=line,
        function=function_of(code),
        text=lines[line - 1].strip() if 0 < line <= len(lines) else "",
        cell=cells.get(code.co_filename),
        is_library=is_library(code.co_filename),
        source=tuple(text.rstrip("\n") for text in lines[first - 1 : line + _LINES_AROUND]),
        first=first,
        mark=_mark(link, lines[line - 1]) if 0 < line <= len(lines) else None,
        values=values,
    )


def _mark(link: TracebackType, text: str) -> tuple[int, int] | None:
    """Find the columns of the expression that was being evaluated; Python 3.10 does not tell."""
    if sys.version_info < (3, 11) or link.tb_lasti < 0:
        return None
    positions = link.tb_frame.f_code.co_positions()
    line, last_line, start, end = next(
        itertools.islice(positions, link.tb_lasti // 2, None), (None, None, None, None)
    )
    if line != link.tb_lineno or start is None or end is None:
        return None
    stripped = text.rstrip()
    begin = _characters(text, start)
    return begin, _characters(text, end) if last_line == line else len(stripped)


def _characters(text: str, nbytes: int) -> int:
    """Turn an offset in the line's UTF-8 bytes, as the compiler counts, into one in characters."""
    return len(text.encode(errors="surrogatepass")[:nbytes].decode(errors="replace"))
