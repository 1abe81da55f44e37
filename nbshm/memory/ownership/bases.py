"""What arrays are views of, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def chain(array: Any, is_one: Callable[[Any], bool]) -> list[Any]:
    """Return an array, the array that it is a view of, and so on, as long as `is_one` holds for these.

    Between two of them may stand an object of numpy's (see `is_link`), which is there then too. numpy keeps
    such chains short.
    """
    found = [array]
    while True:
        base = found[-1].base
        if is_link(base) and is_one(base.base):
            found += (base, base.base)
        elif is_one(base):
            found.append(base)
        else:
            return found


def root(array: Any, is_one: Callable[[Any], bool]) -> Any:
    """Return the array at the end of a chain of views."""
    return chain(array, is_one)[-1]


def is_link(value: Any) -> bool:
    """Tell whether it is what a view by `as_strided` or `sliding_window_view` is over; that has the array."""
    kind = type(value)
    return kind.__name__ == "DummyArray" and kind.__module__.startswith("numpy.")
