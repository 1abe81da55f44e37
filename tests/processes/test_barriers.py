from __future__ import annotations

from nbshm.events import Failed, Result, Waiting
from nbshm.failures.tracebacks import report_exception
from nbshm.jobs import Parcel
from nbshm.processes.barriers import Barrier
from nbshm.wire.messages import Release


def waiting(rank, at="barrier"):
    return Waiting(rank=rank, at=at)


def finished(rank):
    return Result(rank=rank, parcel=Parcel(pickled=b""))


def test_nobody_goes_on_before_all_are_there():
    barrier = Barrier(3)
    assert barrier.see(waiting(2)) == {}
    assert barrier.see(waiting(0)) == {}
    assert barrier.see(waiting(1)) == dict.fromkeys([0, 1, 2], Release())


def test_it_can_be_used_again():
    barrier = Barrier(1)
    assert barrier.see(waiting(0)) == barrier.see(waiting(0)) == {0: Release()}


def test_who_waits_for_a_rank_that_finishes_is_told():
    barrier = Barrier(3)
    barrier.see(waiting(0))
    assert "rank 1 has finished" in barrier.see(finished(1))[0].broken


def test_who_comes_after_a_rank_has_finished_is_told_at_once():
    barrier = Barrier(3)
    barrier.see(finished(1))
    barrier.see(finished(2))
    assert "ranks 1-2 have finished" in barrier.see(waiting(0))[0].broken


def test_a_failure_breaks_nothing():
    barrier = Barrier(2)
    barrier.see(waiting(0))
    assert barrier.see(Failed(rank=1, report=report_exception(ValueError()))) == {}


def test_waiting_for_something_else_is_not_its_business():
    assert Barrier(1).see(waiting(0, at="lock")) == {}
