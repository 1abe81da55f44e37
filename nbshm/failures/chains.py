"""Exceptions that belong together: what one was raised from, the members of a group; and their messages."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

from nbshm.failures.frames import walk
from nbshm.words import printable

LONGEST_CHAIN = 100
MOST_MEMBERS = 15
"""Of a group, that are told; as many as Python shows."""

DEEPEST_GROUP = 10
"""Groups in groups that are told; as deep as Python shows them."""


def safe_message(exception: object) -> str:
    """Return the `str` of an exception or a note as any front end can show it, also if it can't say that."""
    try:
        return printable(str(exception))
    except Exception:  # noqa: BLE001  # whatever a foreign __str__ does, the failure itself must still be told
        return f"<unprintable {type(exception).__name__} object>"


def chain(exception: BaseException) -> list[BaseException]:
    """List an exception, what it was raised from, what that was raised from, ...; the latest first."""
    links: list[BaseException] = []
    link: BaseException | None = exception
    while link is not None and len(links) < LONGEST_CHAIN and not any(link is other for other in links):
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


def relatives(exception: BaseException) -> Iterator[BaseException]:
    """Yield an exception with all its causes, contexts and members, and theirs, each once."""
    todo, seen = [exception], set()
    while todo:
        link = todo.pop()
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        todo += [other for other in (link.__cause__, link.__context__, *members(link)) if other is not None]


def trim(exception: BaseException, hidden: tuple[str, ...]) -> None:
    """Take the frames of code under the `hidden` directories out of an exception's tracebacks.

    Those of causes, contexts and members too. The exception is changed: it is about to be told, not caught.
    """
    for relative in relatives(exception):
        # Not by assignment, which a frozen dataclass refuses.
        BaseException.with_traceback(relative, _trimmed(relative.__traceback__, hidden))


def _is_group(exception: BaseException) -> bool:
    return any(base.__name__ == "BaseExceptionGroup" for base in type(exception).__mro__)


def _trimmed(links: TracebackType | None, hidden: tuple[str, ...]) -> TracebackType | None:
    kept = [link for link in walk(links) if not link.tb_frame.f_code.co_filename.startswith(hidden)]
    result: TracebackType | None = None
    for link in reversed(kept):
        result = TracebackType(result, link.tb_frame, link.tb_lasti, link.tb_lineno)
    return result
