"""Iterables that may have another order in each process: sets, also behind other iterators, are refused."""

from __future__ import annotations

import gc
import inspect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from types import GeneratorType
from typing import Any

_SETS = (set, frozenset)
_SET_ITERATOR = type(iter(set[Any]()))
_MANY = 100
_AROUND_OTHERS = (enumerate, filter, map, reversed, zip)


def check_order(iterable: Iterable[Any]) -> None:
    """Refuse a set, also one that other iterators go through: the items would not be the notebook's n-th."""
    kind = type(iterable).__name__
    if isinstance(iterable, _SETS):
        raise TypeError(f"claim: a {kind} has another order in each process: claim(sorted(...))")
    if _goes_through_a_set(iterable):
        raise TypeError(
            f"claim: this {kind} goes through a set, which has another order in each process: use sorted(...)"
        )


def _goes_through_a_set(iterable: Iterable[Any]) -> bool:
    """Tell whether items plainly come from a set, also through iterators around it.

    Nothing is taken from an iterator for that, and no code of the person's runs.
    """
    if isinstance(iterable, (*_SETS, _SET_ITERATOR)):
        return True
    return any(map(_goes_through_a_set, _sources(iterable)))


def _sources(iterable: Iterable[Any]) -> Sequence[Any]:
    """Return what an iterable goes through, as far as that can be seen."""
    kind = type(iterable)
    if isinstance(iterable, GeneratorType):  # of an expression, that is: a function may do anything
        return [inspect.getgeneratorlocals(iterable).get(".0")]
    if any(base.__module__ == "tqdm.std" for base in kind.__mro__):
        return [vars(iterable).get("iterable")]
    if kind not in _AROUND_OTHERS and kind.__module__ != itertools.__name__:
        return []
    held = gc.get_referents(iterable)
    if kind is itertools.chain:
        return [*held, *_in_sequences(gc.get_referents(*held[-1:]))]  # the last is its iterator of iterables
    # They hold iterators: a set is an item that was taken before.
    return [one for one in [*held, *_in_sequences(held)] if not isinstance(one, _SETS)]


def _in_sequences(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the parts of tuples and lists, the first of many."""
    for value in values:
        if type(value) in {tuple, list}:
            yield from value[:_MANY]
