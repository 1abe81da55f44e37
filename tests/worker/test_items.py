from __future__ import annotations

import gc
import weakref

import pytest

from nbshm.wire.shared_loops import Range
from nbshm.worker.items import Sliced, Streamed, source_of


@pytest.mark.parametrize("items", [[1, 2, 3], (1, 2, 3), range(1, 4)])
def test_lists_tuples_and_ranges_are_sliced(items):
    source = source_of(items)
    assert isinstance(source, Sliced)
    assert (source.length, list(source.take(Range(1, 3), []))) == (3, [2, 3])


@pytest.mark.parametrize(
    ("items", "length"),
    [({"a": 1, "b": 2}, 2), ("ab", 2), ((letter for letter in "ab"), None), (iter("ab"), None)],
)
def test_anything_else_is_streamed(items, length):
    source = source_of(items)
    assert isinstance(source, Streamed)
    assert (source.length, list(source.take(Range(0, 5), []))) == (length, ["a", "b"])


def test_a_stream_skips_what_others_have_done():
    assert Streamed(iter(range(100)), None).take(Range(90, 93), []) == [90, 91, 92]


def test_a_stream_keeps_what_others_hold():
    source = Streamed(iter(range(100)), None)
    assert source.take(Range(50, 52), [Range(10, 20), Range(30, 40)]) == [50, 51]
    assert list(source.take(Range(12, 20), [Range(30, 40)])) == list(range(12, 20))
    assert list(source.take(Range(30, 33), [Range(33, 40)])) == [30, 31, 32]
    assert source.take(Range(52, 53), [Range(33, 40)]) == [52]
    assert list(source.take(Range(33, 40), [])) == list(range(33, 40))


def test_a_stream_lets_go_of_what_nobody_holds_any_more():
    class Item:
        pass

    seen = []

    def items():
        while True:
            item = Item()
            seen.append(weakref.ref(item))
            yield item

    source = Streamed(items(), None)
    source.take(Range(5, 6), [Range(3, 4)])
    gc.collect()
    assert [item() is not None for item in seen[:5]] == [False, False, False, True, False]
    source.take(Range(6, 7), [])
    gc.collect()
    assert seen[3]() is None


def test_a_stream_knows_its_end():
    source = Streamed(iter(range(3)), None)
    source.skip_to(2)
    assert not source.has_ended()
    assert source.has_ended()


def test_a_stream_that_ends_early_tells_how_far_it_came():
    source = Streamed(iter(range(3)), None)
    source.skip_to(10_000)
    assert source.position == 3
