"""Why a value cannot travel: the path to the part that fails, the reason, and what to do instead."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nbshm.errors import CannotSend

_DEPTH = 12
_REMEDIES = {
    "generator": ("is a live generator", "Make it inside the cell, or send a list."),
    "coroutine": ("is a coroutine", "Call the function inside the cell."),
    "TextIOWrapper": ("is an open file", "Open it inside the cell."),
    "BufferedReader": ("is an open file", "Open it inside the cell."),
    "BufferedWriter": ("is an open file", "Open it inside the cell."),
    "BufferedRandom": ("is an open file", "Open it inside the cell."),
    "FileIO": ("is an open file", "Open it inside the cell."),
    "Connection": ("holds an open connection", "Open it inside the cell."),
    "Cursor": ("holds an open connection", "Open it inside the cell."),
    "socket": ("is an open socket", "Connect inside the cell."),
    "SSLSocket": ("is an open socket", "Connect inside the cell."),
    "lock": ("is a lock of threads", "Use nbshm.lock(), or a lock of multiprocessing."),
    "RLock": ("is a lock of threads", "Use nbshm.lock(), or a lock of multiprocessing."),
    "Thread": ("is a thread", "Start it inside the cell."),
    "frame": ("is a frame", "Send what you need of it."),
}


class Unsendable(TypeError):  # noqa: N818  # it names a condition, as the public exceptions do
    """A value that is refused on purpose, with the reason and the remedy."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(f"{reason}. {remedy}".strip())
        self.reason = reason
        self.remedy = remedy


def refusal(
    name: str, value: Any, error: Exception, *, user: str | None, again: Callable[[Any], Any]
) -> CannotSend:
    """Return the exception that says what cannot be sent, why, and what to do.

    `again` pickles a part of the value; parts that fail lead the way to the culprit.
    """
    path, culprit, cause = _culprit(name, value, error, again, seen=set())
    reason, remedy = _explain(culprit, cause)
    return CannotSend(path, reason=reason, remedy=remedy, used=user if user != name else None)


def _culprit(
    path: str, value: Any, error: Exception, again: Callable[[Any], Any], *, seen: set[int]
) -> tuple[str, Any, Exception]:
    """Follow the parts that fail, down to the one whose own parts are all fine."""
    if id(value) in seen or len(seen) > _DEPTH:
        return path, value, error
    seen.add(id(value))
    for step, part in _parts(value):
        try:
            again(part)
        except Exception as inner:  # noqa: BLE001, PERF203  # whatever pickling that part raises
            if isinstance(error, Unsendable) and not isinstance(inner, Unsendable):
                continue  # the whole was refused for a reason, which says more than its parts do
            return _culprit(path + step, part, inner, again, seen=seen)
    return path, value, error


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a value with how each is reached from it."""
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{index}]", part) for index, part in enumerate(value))
    elif isinstance(value, (set, frozenset)):
        yield from (("{...}", part) for part in value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((f".{item.name}", getattr(value, item.name, None)) for item in dataclasses.fields(value))
    yield from _inner(value)


def _inner(value: Any) -> Iterator[tuple[str, Any]]:
    for cell in getattr(value, "__closure__", None) or ():
        yield " (its closure)", cell.cell_contents
    yield from ((" (a default)", default) for default in getattr(value, "__defaults__", None) or ())
    for attribute in ("func", "args", "keywords", "__self__"):
        if callable(value) and hasattr(value, attribute) and not isinstance(value, type):
            yield f".{attribute}", getattr(value, attribute)
    dictionary = getattr(value, "__dict__", None)
    if isinstance(dictionary, dict):
        yield from ((f".{key}", part) for key, part in dictionary.items())


def _explain(culprit: Any, error: Exception) -> tuple[str, str]:
    kind = type(culprit)
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    if isinstance(error, Unsendable):
        return error.reason, error.remedy
    if kind.__name__ in _REMEDIES:
        reason, remedy = _REMEDIES[kind.__name__]
        return f"{name} {reason}", remedy
    return f"{name} can't be pickled ({type(error).__name__}: {error})", "Make it inside the cell."
