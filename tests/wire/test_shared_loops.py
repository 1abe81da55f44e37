from __future__ import annotations

import pytest

from nbshm.wire.shared_loops import Range, SharedLoop


def loop(nprocs: int, length: int | None = None) -> SharedLoop:
    fresh = SharedLoop.unpack(b"", nprocs)
    fresh.length = length
    return fresh


def taken_by_turns(shared: SharedLoop) -> list[Range]:
    turns, rank = [], 0
    while taken := shared.take(rank):
        turns.append(taken)
        rank = (rank + 1) % len(shared.held)
    return turns


@pytest.mark.parametrize("length", [0, 1, 2, 7, 100, 12345])
@pytest.mark.parametrize("nprocs", [1, 2, 5])
def test_every_position_is_given_out_once(nprocs, length):
    given = [
        position for turn in taken_by_turns(loop(nprocs, length)) for position in range(turn.start, turn.stop)
    ]
    assert given == list(range(length))


def test_chunks_shrink_to_single_items():
    sizes = [len(turn) for turn in taken_by_turns(loop(4, 1000))]
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (125, 1)


def test_few_items_are_given_out_one_by_one():
    assert [len(turn) for turn in taken_by_turns(loop(4, 8))] == [1] * 8


def test_a_million_items_need_few_turns():
    assert len(taken_by_turns(loop(4, 1_000_000))) < 150


def test_chunks_of_unknown_length_grow_slowly():
    shared = loop(4)
    turns = [shared.take(rank % 4) for rank in range(1000)]
    assert [len(turn) for turn in turns[:256]] == [1] * 256
    assert max(len(turn) / max(turn.start, 128) for turn in turns) <= 1 / 128
    assert turns[-1].stop > 10_000


def test_the_state_survives_the_board():
    shared = loop(3, 50)
    shared.take(1)
    shared.leave(0, Range(4, 9))
    assert SharedLoop.unpack(shared.pack(), 3) == shared
    assert len(shared.pack()) == SharedLoop.size(3)


def test_the_first_rank_that_counts_is_remembered():
    shared = loop(2)
    assert shared.count(1, 10) == 10
    assert (shared.count(0, 12), shared.counted_by) == (10, 1)
    assert SharedLoop.unpack(shared.pack(), 2).length == 10


def test_what_others_hold_or_left_may_still_be_wanted():
    shared = loop(3, 60)
    held = shared.take(0), shared.take(1), shared.take(2)
    shared.leave(1, Range(held[1].start + 1, held[1].stop))
    assert shared.wanted_by_others(2) == [held[0], Range(held[1].start + 1, held[1].stop)]


def test_what_a_rank_leaves_goes_to_the_others_first():
    shared = loop(2, 100)
    first = shared.take(0)
    shared.leave(0, Range(3, first.stop))
    turns = []
    while taken := shared.take(1):
        turns.append(taken)
    given = [position for turn in turns for position in range(turn.start, turn.stop)]
    assert turns[0].start == 3
    assert sorted(given) == list(range(3, 100))
