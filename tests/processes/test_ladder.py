from __future__ import annotations

from nbshm.processes.endings import Ladder, Rung


def test_the_rungs_follow_each_other():
    ladder = Ladder(start=10, grace=2)
    assert ladder.due(9.9) == []
    assert ladder.due(10) == [Rung.INTERRUPT]
    assert ladder.due(11.9) == []
    assert ladder.due(12) == [Rung.TERMINATE]
    assert ladder.due(13) == [Rung.KILL]
    assert ladder.due(99) == []


def test_the_next_time_is_that_of_the_next_rung():
    ladder = Ladder(start=10, grace=2)
    times = []
    while (time := ladder.next_time()) is not None:
        times.append(time)
        ladder.due(time)
    assert times == [10, 12, 13]


def test_rungs_that_were_slept_through_are_all_due():
    assert Ladder(start=10, grace=2).due(20) == [Rung.INTERRUPT, Rung.TERMINATE, Rung.KILL]


def test_who_is_in_a_hurry_skips_to_the_last_rung():
    ladder = Ladder(start=10, grace=600)
    ladder.due(10)
    ladder.hurry(11)
    assert ladder.due(11) == [Rung.KILL]
    assert ladder.next_time() is None


def test_hurrying_after_the_last_rung_kills_nobody_twice():
    ladder = Ladder(start=10, grace=0)
    ladder.due(20)
    ladder.hurry(21)
    assert ladder.due(21) == []


def test_a_ladder_that_has_not_begun_can_begin_at_once():
    ladder = Ladder(start=10, grace=2)
    ladder.begin_by(9)
    assert ladder.due(9) == [Rung.INTERRUPT]
    assert ladder.next_time() == 11


def test_a_ladder_that_has_begun_is_not_begun_again():
    ladder = Ladder(start=10, grace=2)
    ladder.due(10)
    ladder.begin_by(11)
    assert ladder.next_time() == 12
