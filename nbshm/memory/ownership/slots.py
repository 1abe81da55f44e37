"""Slots: where else than under a name arrays are bound, seen as mappings.

An array that is shared ahead of a cell may be held by what it was handed over in, a list or the attributes of
an object. What is bound there follows it, as the notebook's names do. What the calling function holds is its
own affair: it gets the shared array back.
"""

from __future__ import annotations

import abc
import collections
import inspect
import sys
from collections.abc import Iterator, MutableMapping
from types import FrameType
from typing import Any

from nbshm.attributes import attribute
from nbshm.memory.ownership.kinds import is_array
from nbshm.memory.ownership.reach import own_parts


class Slots(MutableMapping[int, Any]):
    """Values by number, which are there to be bound anew but not to be deleted; `holder` is what has them."""

    @property
    @abc.abstractmethod
    def holder(self) -> Any:
        """The object that holds a reference to each value."""

    def __delitem__(self, _: int) -> None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))


class Items(Slots):
    """The items of a list or a deque."""

    def __init__(self, items: Any) -> None:
        self._items = items

    @property
    def holder(self) -> Any:
        """The list or deque."""
        return self._items

    def __getitem__(self, index: int) -> Any:
        return self._items[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self._items[index] = value

    def __len__(self) -> int:
        return len(self._items)


class Argument(Slots):
    """What a function was called with, given up to this; a tuple that nobody else has is its items.

    Before Python 3.11 the caller holds an argument once more while it waits; later too while torch's
    compiler looks at all calls, so it is measured each time.
    """

    def __init__(self, given: tuple[Any]) -> None:
        self._waiting = _extra_references(object())
        self._is_tuple = type(given[0]) is tuple and sys.getrefcount(given[0]) == 2 + self._waiting
        self._parts: tuple[Any, ...] = given[0] if self._is_tuple else given
        self._new: dict[int, Any] = {}

    @property
    def holder(self) -> Any:
        """The tuple of the argument, or that it is."""
        return self._parts

    @property
    def value(self) -> Any:
        """The argument as it is now."""
        parts = tuple(self._new.get(index, part) for index, part in enumerate(self._parts))
        return parts if self._is_tuple else parts[0]

    def __getitem__(self, index: int) -> Any:
        return self._parts[min(index, len(self._parts) - 1)]

    def __setitem__(self, index: int, value: Any) -> None:
        self._new[min(index, len(self._parts) - 1)] = value

    def __len__(self) -> int:
        return len(self._parts) if self._is_tuple else 1 + self._waiting


class Locals(Slots):
    """The arrays among a function's local variables, which stay as they are; no others are looked at.

    Each is there twice: once for the variable, and once because it is held here.
    """

    def __init__(self, frame: FrameType) -> None:
        self._arrays: list[Any] = []
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            variables = frame.f_locals
            self._arrays += [value for value in variables.values() if is_array(value)]
            if isinstance(variables, dict):  # before Python 3.13 a copy, which the frame would keep
                variables.clear()

    @property
    def holder(self) -> Any:
        """The list of the arrays."""
        return self._arrays

    def __getitem__(self, index: int) -> Any:
        return self._arrays[index // 2]

    def __setitem__(self, _: int, __: Any) -> None:
        """Leave it to the function to bind what it gets."""

    def __len__(self) -> int:
        return 2 * len(self._arrays)


def slots_in(value: Any) -> list[MutableMapping[Any, Any]]:
    """Return the slots of all lists, dictionaries and own objects that a value consists of."""
    found: dict[int, MutableMapping[Any, Any]] = {}

    for part in own_parts(value):
        kind = type(part)  # a lazy object acts on `isinstance`
        if issubclass(kind, (list, collections.deque)):
            found[id(part)] = Items(part)
        elif issubclass(kind, dict):
            found[id(part)] = part
        elif type(attributes := attribute(part, "__dict__")) is dict:
            found[id(attributes)] = attributes
    return list(found.values())


def _extra_references(value: object) -> int:
    return sys.getrefcount(value) - 2
