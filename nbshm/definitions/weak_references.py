"""Weak references, and containers of them: what they lead to goes with them.

In the notebook something holds that. Where they arrive nothing else may, so a process that is given them
holds it for as long as it lives. What comes back to the notebook is held by what comes with it alone.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

Reduced: TypeAlias = "tuple[Any, ...]"

_held: list[Any] = []  # by a process that was given it, to its end


def reducers() -> dict[type, Callable[[Any], Reduced]]:
    """Return a reducer for each type of them."""
    return _reducers(weakref.ref, _fill)


def holding_reducers() -> dict[type, Callable[[Any], Reduced]]:
    """Return those for a process that is to hold what they lead to."""
    return _reducers(_held_reference, _fill_and_hold)


def _reducers(
    make: Callable[..., weakref.ref[Any]], fill: Callable[[Any, list[Any]], None]
) -> dict[type, Callable[[Any], Reduced]]:
    def reduce_reference(reference: weakref.ref[Any]) -> Reduced:
        target = reference()
        return (_dead, ()) if target is None else (make, (target, reference.__callback__))

    def reduce_container(container: Any) -> Reduced:
        is_set = isinstance(container, weakref.WeakSet)
        members = list(container if is_set else container.items())
        return type(container), (), members, None, None, fill

    return {
        weakref.ref: reduce_reference,
        weakref.WeakSet: reduce_container,
        weakref.WeakKeyDictionary: reduce_container,
        weakref.WeakValueDictionary: reduce_container,
    }


def _held_reference(target: Any, callback: Callable[..., Any] | None) -> weakref.ref[Any]:
    _held.append(target)
    return weakref.ref(target, callback)


def _dead() -> weakref.ref[Any]:
    return weakref.ref(_Target())


class _Target:
    """Gone as soon as it is there."""


def _fill(container: Any, members: Iterable[Any]) -> None:
    container.update(members)


def _fill_and_hold(container: Any, members: Iterable[Any]) -> None:
    _held.append(members)
    _fill(container, members)
