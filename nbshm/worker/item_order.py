"""What an iterable goes through, also behind other iterators.

A set is refused: it may have another order in each process. Numbers from shared memory may be other ones
already when a rank that comes late reads them.
"""

from __future__ import annotations

import gc
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import GeneratorType
from typing import Any

from nbshm.worker.item_texts import is_shared_array


class _Indexed:
    def __getitem__(self, _: int) -> None: ...


_SETS = (set, frozenset)
_SET_ITERATOR = type(iter(set[Any]()))
_SEQUENCE_ITERATOR = type(iter(_Indexed()))  # what goes through an array, for one
_MANY = 100
_AROUND_OTHERS = (enumerate, filter, map, reversed, zip)


def check_order(iterable: Iterable[Any]) -> None:
    """Refuse a set, also one that other iterators go through: the items would not be the notebook's n-th."""
    kind = type(iterable).__name__
    if isinstance(iterable, _SETS):
        raise TypeError(f"claim: a {kind} has another order in each process: claim(sorted(...))")
    if _goes_through(iterable, _is_set):
        raise TypeError(
            f"claim: this {kind} goes through a set, which has another order in each process: use sorted(...)"
        )


def reads_shared_memory(iterable: Iterable[Any]) -> bool:
    """Tell whether items plainly come from an array into which other ranks may write."""
    return _goes_through(iterable, is_shared_array)


def _goes_through(iterable: Any, is_it: Callable[[Any], bool]) -> bool:
    """Tell that of what items come from, also through iterators around it.

    Nothing is taken from an iterator for that, and no code of the person's runs.
    """
    return is_it(iterable) or any(_goes_through(source, is_it) for source in _sources(iterable))


def _is_set(value: Any) -> bool:
    return isinstance(value, (*_SETS, _SET_ITERATOR))


def _sources(iterable: Iterable[Any]) -> Sequence[Any]:
    """Return what an iterable goes through, as far as that can be seen."""
    kind = type(iterable)
    if isinstance(iterable, GeneratorType):  # of an expression, that is: a function may do anything
        return [inspect.getgeneratorlocals(iterable).get(".0")]
    if any(base.__module__ == "tqdm.std" for base in kind.__mro__):
        return [vars(iterable).get("iterable")]
    if kind is _SEQUENCE_ITERATOR:
        return gc.get_referents(iterable)
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
