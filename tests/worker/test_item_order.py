"""Iterables that go through a set, and those that do not."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import tqdm

from nbshm.worker.item_order import check_order

NAMES = {"a", "b"}


@pytest.mark.parametrize("items", [NAMES, frozenset(NAMES)])
def test_a_set_is_refused(items: Any):
    with pytest.raises(TypeError, match=r"claim: a (frozen)?set has another order in each process"):
        check_order(items)


@pytest.mark.parametrize(
    "items",
    [
        iter(NAMES),
        enumerate(NAMES),
        zip(range(2), NAMES, strict=False),
        map(str, NAMES),
        filter(None, frozenset(NAMES)),
        (name for name in NAMES),
        enumerate(name for name in zip(NAMES, strict=False)),
        itertools.islice(NAMES, 1),
        itertools.chain("xy", NAMES),
        itertools.zip_longest("xyz", NAMES),
        tqdm.tqdm(NAMES, disable=True),
        tqdm.tqdm(enumerate(NAMES), disable=True),
    ],
    ids=lambda items: type(items).__name__,
)
def test_a_set_that_other_iterators_go_through_is_refused_too(items: Iterable[Any]):
    told = (
        r"claim: this \w+ goes through a set, which has another order in each process: use sorted\(\.\.\.\)"
    )
    with pytest.raises(TypeError, match=f"^{told}$"):
        check_order(items)


def different(items: Iterable[str]) -> Iterator[str]:
    seen = set()
    for item in items:
        if item not in seen:
            seen.add(item)
            yield item


@pytest.mark.parametrize(
    "items",
    [
        enumerate(sorted(NAMES)),
        zip([NAMES], ["a"], strict=False),
        (name for name in "ab" if name in NAMES),
        filter(NAMES.__contains__, "abc"),
        map(set, ["a"]),
        itertools.chain([NAMES], "a"),
        itertools.repeat(NAMES, 2),
        dict.fromkeys("ab").keys(),
        different("abba"),
    ],
    ids=lambda items: type(items).__name__,
)
def test_a_set_that_is_an_item_or_is_asked_only_is_no_reason_to_refuse(items: Iterable[Any]):
    check_order(items)
    assert list(items), "nothing has been taken"


def test_items_that_were_taken_before_are_no_reason_to_refuse():
    pairs = enumerate([{1}, {2}, {3}])
    next(pairs)
    check_order(pairs)
    assert len(list(pairs)) == 2
