"""An exception as data: what it is, where it was raised, how it looks, and itself where it can travel.

A worker extracts the report where the exception was raised; everyone else only reads it. Nothing here needs
more than the standard library, so that a worker that fails before it has a shell can report too.
"""

from __future__ import annotations

import linecache
import os
import pickle
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeAlias

Dumps: TypeAlias = Callable[[Any], bytes]

OWN_DIRECTORY = os.path.join(os.path.dirname(__file__), "")  # noqa: PTH118, PTH120  # compared with co_filename, a str
_FRAMES_AT_EACH_END = 50  # runaway recursion: more frames say nothing new, and a report should stay small
_LONGEST_CHAIN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One line on the way to an exception; `cell` is the execution count where a notebook cell holds it."""

    filename: str
    line: int
    function: str
    text: str
    cell: int | None = None

    @property
    def place(self) -> str:
        """Where this is, as a person says it: `In [7] line 5`, or `tools.py line 12`."""
        source = os.path.basename(self.filename) if self.cell is None else f"In [{self.cell}]"  # noqa: PTH119  # `<string>` is no path
        return f"{source} line {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceptionReport:
    """What is told about an exception in another process.

    `rendered` is the traceback as the notebook shows it, with ANSI colours, causes, members and notes.
    `pickled` is for `unpack_exception`; None where the exception can't be pickled and unpickled again.
    """

    type_name: str
    message: str
    frames: tuple[Frame, ...] = field(repr=False)
    rendered: str = field(repr=False)
    pickled: bytes | None = field(default=None, repr=False)

    @property
    def where(self) -> str | None:
        """The place in the notebook's code that came last: `In [7] line 5`; None if no frame is known."""
        in_cells = [frame for frame in self.frames if frame.cell is not None]
        return (in_cells or self.frames)[-1].place if self.frames else None

    @property
    def signature(self) -> tuple[object, ...]:
        """What is equal for two failures of one kind, whatever their messages say."""
        return (self.type_name, *((frame.filename, frame.line, frame.function) for frame in self.frames))


class ExceptionStandIn(Exception):  # noqa: N818  # it stands for an error, and is none
    """Stands for an exception that could not be pickled: its type's name and its message."""


def report_exception(
    exception: BaseException,
    *,
    cells: Mapping[str, int] | None = None,
    rendered: str | None = None,
    dumps: Dumps = pickle.dumps,
) -> ExceptionReport:
    """Extract a report from an exception.

    `cells` maps names of code to cell numbers. Without `rendered` the traceback is Python's own.
    """
    frames = _frames(exception, cells or {})
    return ExceptionReport(
        type_name=type(exception).__name__,
        message=safe_message(exception),
        frames=frames,
        rendered=render_plainly(exception) if rendered is None else rendered,
        pickled=pack_exception(exception, dumps=dumps),
    )


def safe_message(exception: BaseException) -> str:
    """Return `str(exception)`, also for an exception that can't even say that."""
    try:
        return str(exception)
    except Exception:  # noqa: BLE001  # whatever a foreign __str__ does, the failure itself must still be told
        return f"<unprintable {type(exception).__name__} object>"


def render_plainly(exception: BaseException) -> str:
    """Render an exception as Python does, for where there is no shell; never fails."""
    try:
        return "".join(traceback.format_exception(type(exception), exception, exception.__traceback__))
    except Exception:  # noqa: BLE001  # notes, members and subclasses' attributes are foreign code as well
        return f"{type(exception).__name__}: {safe_message(exception)}\n"


def chain(exception: BaseException) -> list[BaseException]:
    """List an exception, what it was raised from, what that was raised from, ...; the latest first."""
    links: list[BaseException] = []
    link: BaseException | None = exception
    while link is not None and len(links) < _LONGEST_CHAIN and not any(link is other for other in links):
        links.append(link)
        link = predecessor(link)
    return links


def predecessor(exception: BaseException) -> BaseException | None:
    """Return the exception that a traceback shows above this one."""
    if exception.__cause__ is not None:
        return exception.__cause__
    return None if exception.__suppress_context__ else exception.__context__


def members(exception: BaseException) -> tuple[BaseException, ...]:
    """Return the exceptions in a group, none for any other (Python 3.10 knows no groups)."""
    found = getattr(exception, "exceptions", ())
    return tuple(found) if _is_group(exception) else ()


def trim(exception: BaseException, hidden: tuple[str, ...]) -> None:
    """Take the frames of code under the `hidden` directories out of an exception's tracebacks.

    Those of causes, contexts and members too. The exception is changed: it is about to be told, not caught.
    """
    todo, seen = [exception], set()
    while todo:
        link = todo.pop()
        if id(link) in seen:
            continue
        seen.add(id(link))
        link.__traceback__ = _trimmed(link.__traceback__, hidden)
        todo += [other for other in (link.__cause__, link.__context__, *members(link)) if other is not None]


def _is_group(exception: BaseException) -> bool:
    return any(base.__name__ == "BaseExceptionGroup" for base in type(exception).__mro__)


def _trimmed(links: TracebackType | None, hidden: tuple[str, ...]) -> TracebackType | None:
    kept = [link for link in _links(links) if not link.tb_frame.f_code.co_filename.startswith(hidden)]
    result: TracebackType | None = None
    for link in reversed(kept):
        result = TracebackType(result, link.tb_frame, link.tb_lasti, link.tb_lineno)
    return result


def _links(link: TracebackType | None) -> Iterator[TracebackType]:
    while link is not None:
        yield link
        link = link.tb_next


def _frames(exception: BaseException, cells: Mapping[str, int]) -> tuple[Frame, ...]:
    links = list(_links(exception.__traceback__))
    if len(links) > 2 * _FRAMES_AT_EACH_END:
        links = links[:_FRAMES_AT_EACH_END] + links[-_FRAMES_AT_EACH_END:]
    return tuple(_frame(link, cells) for link in links) + _unparsed(exception, cells)


def _frame(link: TracebackType, cells: Mapping[str, int]) -> Frame:
    code, line = link.tb_frame.f_code, link.tb_lineno or 0  # None for code without line numbers
    return Frame(
        filename=code.co_filename,
        line=line,
        function=code.co_name,
        text=linecache.getline(code.co_filename, line, link.tb_frame.f_globals).strip(),
        cell=cells.get(code.co_filename),
    )


def _unparsed(exception: BaseException, cells: Mapping[str, int]) -> tuple[Frame, ...]:
    """Give a syntax error in a cell the frame that code which could not be compiled never had."""
    filename = exception.filename if isinstance(exception, SyntaxError) else None
    if not isinstance(exception, SyntaxError) or filename is None or filename not in cells:
        return ()
    line = exception.lineno or 0
    text = linecache.getline(filename, line).strip() or (exception.text or "").strip()
    return (Frame(filename=filename, line=line, function="<module>", text=text, cell=cells[filename]),)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Packed:
    """An exception that was pickled, with those that pickle leaves out of it."""

    own: bytes
    cause: _Packed | None
    context: _Packed | None
    suppress_context: bool


def pack_exception(exception: BaseException, *, dumps: Dumps = pickle.dumps) -> bytes | None:
    """Pickle an exception with its causes and contexts; None if it would not come back as what it is.

    A cause or context that can't be pickled is replaced by an `ExceptionStandIn`.
    """
    own = _pickled(exception, dumps)
    if own is None:
        return None
    return pickle.dumps(_packed(exception, own, dumps, depth=0))


def unpack_exception(packed: bytes) -> BaseException:
    """Return the exception that `pack_exception` pickled, with its causes and contexts."""
    return _unpacked(pickle.loads(packed))


def _packed(exception: BaseException, own: bytes, dumps: Dumps, *, depth: int) -> _Packed:
    def follow(other: BaseException | None) -> _Packed | None:
        if other is None or depth >= _LONGEST_CHAIN:
            return None
        return _packed(other, _pickled_or_stand_in(other, dumps), dumps, depth=depth + 1)

    return _Packed(
        own=own,
        cause=follow(exception.__cause__),
        context=None if exception.__cause__ is not None else follow(exception.__context__),
        suppress_context=exception.__suppress_context__,
    )


class _WithoutInit:
    """Pickles an exception as its arguments and attributes; its own way is to call its class with `args`."""

    def __init__(self, exception: BaseException) -> None:
        self._exception = exception

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (type(self._exception), self._exception.args, dict(vars(self._exception)))


def _remade(kind: type[BaseException], args: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    exception = kind.__new__(kind, *args)
    exception.args = args
    vars(exception).update(attributes)
    return exception


def _pickled(exception: BaseException, dumps: Dumps) -> bytes | None:
    """Pickle an exception so that it comes back as what it is, whatever arguments its `__init__` takes."""
    return _tried(exception, exception, dumps) or _tried(_WithoutInit(exception), exception, dumps)


def _tried(form: object, exception: BaseException, dumps: Dumps) -> bytes | None:
    try:
        pickled = dumps(form)
        return pickled if type(pickle.loads(pickled)) is type(exception) else None
    except Exception:  # noqa: BLE001  # a foreign __reduce__ or __init__; None is how the report says so
        return None


def _pickled_or_stand_in(exception: BaseException, dumps: Dumps) -> bytes:
    stand_in = ExceptionStandIn(f"{type(exception).__name__}: {safe_message(exception)}")
    return _pickled(exception, dumps) or pickle.dumps(stand_in)


def _unpacked(packed: _Packed) -> BaseException:
    exception: BaseException = pickle.loads(packed.own)
    if packed.cause is not None:
        exception.__cause__ = _unpacked(packed.cause)
    if packed.context is not None:
        exception.__context__ = _unpacked(packed.context)
    exception.__suppress_context__ = packed.suppress_context
    return exception
