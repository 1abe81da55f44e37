"""An exception as data: what it is, where it was raised, how it looks, and itself where it can travel.

A worker extracts the report where the exception was raised; everyone else only reads it. Nothing here needs
more than the standard library, so that a worker that fails before it has a shell can report too.
"""

from __future__ import annotations

import linecache
import pickle
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nbshm.failures.chains import DEEPEST_GROUP, MOST_MEMBERS, chain, members, safe_message
from nbshm.failures.frames import Describe, Frame, frames_of, nothing_described
from nbshm.failures.packed_exceptions import Dumps, pack_exception
from nbshm.words import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceptionReport:
    """What is told about an exception in another process.

    `rendered` is the traceback as the notebook shows it, with ANSI colours, causes, members and notes.
    `pickled` is for `unpack_exception`; None where the exception can't be pickled and unpickled again.
    `cause` is what it was raised from (`is_direct`) or what was being handled then, `members` are the
    exceptions of a group; theirs are not rendered again.
    """

    type_name: str
    message: str
    frames: tuple[Frame, ...] = field(repr=False)
    rendered: str = field(default="", repr=False)
    pickled: bytes | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    cause: ExceptionReport | None = field(default=None, repr=False)
    is_direct: bool = False
    members: tuple[ExceptionReport, ...] = field(default=(), repr=False)

    @property
    def where(self) -> str | None:
        """The place in the notebook's code that came last: `In [7] line 5`; None if no frame is known."""
        in_cells = [frame for frame in self.frames if frame.cell is not None]
        return (in_cells or self.frames)[-1].place if self.frames else None

    @property
    def signature(self) -> tuple[object, ...]:
        """What is equal for two failures of one kind, whatever their messages say."""
        return (self.type_name, *((frame.filename, frame.line, frame.function) for frame in self.frames))


def report_exception(
    exception: BaseException,
    *,
    cells: Mapping[str, int] | None = None,
    rendered: str | None = None,
    dumps: Dumps = pickle.dumps,
    describe: Describe = nothing_described,
) -> ExceptionReport:
    """Extract a report from an exception.

    `cells` maps names of code to cell numbers. Without `rendered` the traceback is Python's own. `describe`
    describes the values of names in frames.
    """
    report = _Extraction(cells or {}, describe).chained(exception)
    return replace(
        report,
        rendered=printable(render_plainly(exception) if rendered is None else rendered),
        pickled=pack_exception(exception, dumps=dumps),
    )


class _Extraction:
    """Extracts reports from exceptions that belong to each other."""

    def __init__(self, cells: Mapping[str, int], describe: Describe) -> None:
        self._cells = cells
        self._describe = describe

    def chained(self, exception: BaseException, *, depth: int = 0) -> ExceptionReport:
        """Extract an exception with those that it was raised from, and its members."""
        report: ExceptionReport | None = None
        for link in reversed(chain(exception)):
            direct = report is not None and link.__cause__ is not None
            report = replace(self._alone(link, depth), cause=report, is_direct=direct)
        assert report is not None  # noqa: S101  # a chain begins with the exception itself
        return report

    def _alone(self, exception: BaseException, depth: int) -> ExceptionReport:
        inner = members(exception)[:MOST_MEMBERS] if depth < DEEPEST_GROUP else ()
        frames = frames_of(exception.__traceback__, self._cells, self._describe)
        return ExceptionReport(
            type_name=type(exception).__name__,
            message=safe_message(exception),
            frames=frames + _unparsed(exception, self._cells),
            notes=_notes(exception),
            members=tuple(self.chained(member, depth=depth + 1) for member in inner),
        )


def _notes(exception: BaseException) -> tuple[str, ...]:
    notes = getattr(exception, "__notes__", ())
    return tuple(map(safe_message, notes if isinstance(notes, (list, tuple)) else [notes]))


def render_plainly(exception: BaseException) -> str:
    """Render an exception as Python does, for where there is no shell; never fails."""
    try:
        return "".join(traceback.format_exception(type(exception), exception, exception.__traceback__))
    except Exception:  # noqa: BLE001  # notes, members and subclasses' attributes are foreign code as well
        return f"{type(exception).__name__}: {safe_message(exception)}\n"


def _unparsed(exception: BaseException, cells: Mapping[str, int]) -> tuple[Frame, ...]:
    """Give a syntax error in a cell the frame that code which could not be compiled never had."""
    filename = exception.filename if isinstance(exception, SyntaxError) else None
    if not isinstance(exception, SyntaxError) or filename is None or filename not in cells:
        return ()
    line = exception.lineno or 0
    text = linecache.getline(filename, line).strip() or (exception.text or "").strip()
    return (Frame(filename=filename, line=line, function="<module>", text=text, cell=cells[filename]),)
