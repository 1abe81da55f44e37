"""Why a value cannot travel: the path to the part that fails, the reason, and what to do instead."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, Literal

from nbshm.attributes import attribute
from nbshm.errors import CannotSend
from nbshm.failures.chains import safe_message
from nbshm.own_code import is_module_of_the_persons
from nbshm.own_definitions import is_notebooks_function
from nbshm.parts import parts
from nbshm.words import with_article

_DEPTH = 12
_MOST_TOLD = 3  # steps into a library's object: a longer path says nothing to who has not written it
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
_ATTRIBUTE = re.compile(r"\.\w+$")
_FILLED_BY_PEOPLE = frozenset({"argparse", "builtins", "collections", "functools", "types"})
"""Modules with classes whose objects hold what people put there, not what a library needs."""

_IN_MULTIPROCESSING = frozenset(
    {"queue.Queue", *(f"threading.{name}" for name in ("Barrier", "Condition", "Event", "Semaphore"))}
)


class Unsendable(TypeError):  # noqa: N818  # it names a condition, as the public exceptions do
    """A value that is refused on purpose, with the reason and the remedy.

    `as_a_whole`: whatever its parts would be refused for says less.
    """

    def __init__(self, reason: str, remedy: str = "", *, as_a_whole: bool = False) -> None:
        super().__init__(f"{reason}. {remedy}".strip())
        self.as_a_whole = as_a_whole
        self.reason = reason
        self.remedy = remedy

    def remedy_for(self, path: str) -> str:  # noqa: ARG002  # those of memory name the value
        """Return the remedy for the value that a path leads to."""
        return self.remedy


class Unshareable(Unsendable):
    """A value whose memory can't be shared.

    In the remedy `{its}` stands for the value: `loss.`, or `its ` where it has no name. `{new}` stands for it
    where another takes its place: for an attribute that is `net.last = net.last.`.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy.format(its="its ", new="its "))
        self._remedy = remedy

    def remedy_for(self, path: str) -> str:
        """Return the remedy with the path in it, where that is an expression."""
        if " (" in path:
            return self.remedy
        value = f"{path}."
        return self._remedy.format(its=value, new=f"{path} = {value}" if _ATTRIBUTE.search(path) else value)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """The part of a value that can't be pickled: how it is reached, and what it raises.

    `holder` is the library's object that it is an inner part of, with the path to it, if there is one;
    `steps` is how many lead from there.
    """

    path: str
    value: Any
    error: Exception
    holder: tuple[str, Any] | None = None
    steps: int = 0

    @property
    def is_buried(self) -> bool:
        """Tell whether it is too deep inside of a library's object for its path to mean anything."""
        return self.steps > _MOST_TOLD and not isinstance(self.error, Unshareable)

    @property
    def known_path(self) -> str:
        """The path to it, or to the object that it is buried in."""
        return self.holder[0] if self.holder is not None and self.is_buried else self.path


def refusal(
    name: str, value: Any, error: Exception, *, user: str | None, again: Callable[[Any], Any]
) -> CannotSend:
    """Return the exception that says what cannot be sent, why, and what to do.

    `again` pickles a part of the value; parts that fail lead the way to the culprit.
    """
    culprit = culprit_in(name, value, error, again)
    reason, remedy = explain(culprit)
    action: Literal["send", "share"] = "share" if isinstance(culprit.error, Unshareable) else "send"
    return CannotSend(
        culprit.known_path, reason=reason, remedy=remedy, used=user if user != name else None, action=action
    )


def culprit_in(
    name: str,
    value: Any,
    error: Exception,
    again: Callable[[Any], Any],
    *,
    is_whole: Callable[[Any], bool] = lambda _: False,
) -> Culprit:
    """Return the part of a value that can't be pickled.

    What `is_whole` holds for is refused as it is, whatever its parts are.
    """
    whole = Culprit(path=name, value=value, error=error)
    try:
        return _culprit(whole, again, is_whole, seen=set())
    except Exception:  # noqa: BLE001  # parts of foreign classes raise what they like; the whole can be named
        return whole


def _culprit(
    whole: Culprit, again: Callable[[Any], Any], is_whole: Callable[[Any], bool], *, seen: set[int]
) -> Culprit:
    """Follow the parts that fail, down to the one whose own parts are all fine."""
    if id(whole.value) in seen or len(seen) > _DEPTH or is_whole(whole.value):
        return whole
    seen.add(id(whole.value))
    for step, part in parts(whole.value):
        try:
            again(part)
        except Exception as inner:  # noqa: BLE001, PERF203  # whatever pickling that part raises
            if _says_more(whole.error, inner):
                continue
            holder = _holder(whole)
            found = Culprit(
                path=whole.path + step,
                value=part,
                error=inner,
                holder=holder,
                steps=0 if holder is None else whole.steps + 1,
            )
            return _culprit(found, again, is_whole, seen=seen)
    return whole


def _holder(whole: Culprit) -> tuple[str, Any] | None:
    """Return the outermost of the libraries' objects around a part, inside of the person's innermost."""
    home = _home(whole.value)
    if home in _FILLED_BY_PEOPLE:
        return whole.holder
    is_own = home not in sys.modules or is_module_of_the_persons(home)
    return None if is_own else whole.holder or (whole.path, whole.value)


def _home(value: Any) -> str:
    """Return the module that a function is of, or that the class of another value is of."""
    if type(value) is FunctionType and is_notebooks_function(value):
        return "__main__"
    return str(attribute(value if type(value) is FunctionType else type(value), "__module__"))


def _says_more(error: Exception, inner: Exception) -> bool:
    """Tell whether the reason for which a whole was refused says more than what one of its parts raises."""
    if not isinstance(error, Unsendable):
        return False
    return not isinstance(inner, Unsendable) or (error.as_a_whole and not inner.as_a_whole)


def explain(culprit: Culprit) -> tuple[str, str]:
    """Return the reason why a value cannot travel, a clause, and the remedy, a sentence."""
    reason, remedy = _explained(culprit)
    return f"deep inside, {reason}" if culprit.is_buried else reason, remedy


def _explained(culprit: Culprit) -> tuple[str, str]:
    if isinstance(culprit.error, Unsendable):
        return culprit.error.reason, culprit.error.remedy_for(culprit.path)
    reason = reason_of(culprit.value, culprit.error)
    remedy = "Make it inside the cell."
    known = _REMEDIES.get(str(attribute(type(culprit.value), "__name__")))
    if known is not None:
        reason, remedy = f"{_kind(culprit.value)} {known[0]}", known[1]
    return reason, remedy if culprit.holder is None else _remedy_for_holder(culprit, *culprit.holder)


def _remedy_for_holder(culprit: Culprit, path: str, value: Any) -> str:
    """Return the remedy for a value with a part of a library's own that can't travel."""
    kind = _kind(value)
    instead = "use the one of multiprocessing" if kind in _IN_MULTIPROCESSING else "make that inside the cell"
    part_of = "" if culprit.is_buried else f"part of {path}, "
    return f"It is {part_of}{with_article(kind)}: {instead}."


def reason_of(culprit: Any, error: Exception) -> str:
    """Return what a value has raised when it was pickled, as a clause."""
    if isinstance(error, Unsendable):
        return error.reason
    return f"{_kind(culprit)} can't be pickled ({type(error).__name__}: {safe_message(error)})"


def _kind(value: Any) -> str:
    kind = type(value)
    return f"{attribute(kind, '__module__')}.{attribute(kind, '__qualname__')}".removeprefix("builtins.")
