"""Collectives that ranks call with the same memory, told from those with memory of each rank's own."""

from __future__ import annotations

from nbshm.events import CalledCollective
from nbshm.jobs import Spot
from nbshm.runs.shared_collectives import SharedCollectives


def called(
    rank: int, number: int, offset: int, place: str = "In [3] line 2", group: str = "0"
) -> CalledCollective:
    spots = frozenset({Spot(is_cuda=False, number=0, offset=offset)})
    return CalledCollective(
        rank=rank, group=group, name="all_reduce", number=number, spots=spots, place=place
    )


def test_the_same_memory_in_two_ranks_is_told_once():
    collectives = SharedCollectives()
    told = [collectives.see(called(rank, number, 0)) for number in range(2) for rank in range(3)]
    assert [bool(text) for text in told] == [False, True, False, False, False, False]
    assert told[1].startswith("all_reduce at In [3] line 2 goes over a tensor of the notebook's")


def test_memory_that_one_rank_has_after_the_other_is_not_shared():
    collectives = SharedCollectives()
    offsets = {(0, 0): 0, (1, 0): 8, (0, 1): 8, (1, 1): 0}
    assert not any(collectives.see(called(rank, number, at)) for (rank, number), at in offsets.items())


def test_the_same_memory_in_two_groups_is_not_shared():
    collectives = SharedCollectives()
    assert not any(collectives.see(called(rank, 0, 0, group=str(rank))) for rank in range(2))


def test_a_call_from_no_line_of_a_cell_is_told_without():
    collectives = SharedCollectives()
    collectives.see(called(0, 0, 0, place=""))
    assert str(collectives.see(called(1, 0, 0, place=""))).startswith("all_reduce goes over a tensor")
