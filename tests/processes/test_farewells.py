from __future__ import annotations

from nbshm.events import Ended, Waiting
from nbshm.processes.farewells import BORROWERS, Farewells
from nbshm.wire.messages import Alone


def staying(rank):
    return Waiting(rank=rank, at=BORROWERS)


def ended(rank):
    return Ended(rank=rank, exitcode=0, seconds=1.0)


def test_who_stays_is_told_when_the_last_rank_that_does_something_has_ended():
    farewells = Farewells(3)
    assert farewells.see(staying(1)) == {}
    assert farewells.see(ended(0)) == {}
    assert farewells.see(ended(2)) == {1: Alone()}


def test_those_who_stay_for_each_other_are_told_together_and_once():
    farewells = Farewells(2)
    assert farewells.see(staying(1)) == {}
    assert farewells.see(staying(0)) == {0: Alone(), 1: Alone()}
    assert farewells.see(ended(0)) == {}


def test_waiting_for_something_else_is_not_its_business():
    assert Farewells(1).see(Waiting(rank=0, at="barrier")) == {}
