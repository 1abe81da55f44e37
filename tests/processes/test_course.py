from __future__ import annotations

import signal

import pytest

from nbshm.events import Ended, Exited, Failed, Interrupted, Output, Result, Started
from nbshm.failures.reports import Died, Quit, Raised
from nbshm.failures.tracebacks import report_exception
from nbshm.jobs import Parcel
from nbshm.processes.course import PEER_SECONDS, SETTLE_SECONDS, Course
from nbshm.processes.endings import Rung


def course(nprocs=2, *, grace=2.0, timeout=None):
    return Course([100 + rank for rank in range(nprocs)], grace=grace, timeout=timeout)


def result(rank):
    return Result(rank=rank, parcel=Parcel(pickled=b""))


def ended(rank, exitcode=0):
    return Ended(rank=rank, exitcode=exitcode, seconds=1.5)


def failed(rank):
    return Failed(rank=rank, report=report_exception(ValueError("bad")))


def lost(rank):
    return Failed(rank=rank, report=report_exception(RuntimeError("[pair.cc:553] Connection closed by peer")))


def see(run, *events, now=0.0):
    for event in events:
        run.see(event, now)


def test_a_run_whose_ranks_all_give_a_result_has_finished():
    run = course()
    see(run, Started(rank=0), result(0), ended(0), Started(rank=1))
    assert run.living == [1]
    see(run, result(1), ended(1))
    verdict = run.verdict()
    assert (run.living, verdict.ending, verdict.exitcodes, verdict.seconds) == (
        [],
        "finished",
        (0, 0),
        (1.5, 1.5),
    )


def test_a_result_before_an_end_of_which_nobody_knows_is_enough():
    run = course()
    see(run, *(Started(rank=rank) for rank in range(2)), result(0), result(1))
    see(run, Ended(rank=0, exitcode=255, seconds=1, is_lost=True), Ended(rank=1, exitcode=255, seconds=1))
    assert [failure.rank for failure in run.verdict().failures] == [1]


def test_output_says_nothing_about_the_course():
    run = course()
    see(run, Output(rank=0, stream="stdout", text="x"))
    assert run.next_time() is None


def test_the_others_are_ended_when_a_failure_has_settled():
    run = course()
    see(run, failed(0), now=5)
    assert run.due(5) == []
    assert run.due(5 + SETTLE_SECONDS) == [Rung.INTERRUPT]
    assert run.next_time() == 5 + SETTLE_SECONDS + 2


def test_failures_are_told_in_the_order_in_which_they_were_seen():
    run = course(3)
    see(run, failed(2), failed(0), ended(2, 1), ended(0, 1), result(1), ended(1))
    assert [failure.rank for failure in run.verdict().failures] == [2, 0]


def test_a_rank_that_lost_its_peer_waits_for_the_reason_which_is_the_failure():
    run = course(3)
    see(run, lost(0), ended(0, 1), now=5)
    assert run.due(6) == []
    see(run, failed(1), now=6)
    assert run.due(6 + SETTLE_SECONDS) == [Rung.INTERRUPT]
    see(run, ended(1, 1), ended(2, 1), now=7)
    verdict = run.verdict()
    assert [failure.rank for failure in verdict.failures] == [1]
    assert [(stop.rank, stop.by) for stop in verdict.stopped] == [
        (0, "the loss of its peer"),
        (2, "interrupt"),
    ]


def test_a_lost_peer_is_the_failure_if_nobody_gives_a_reason():
    run = course()
    see(run, lost(0), ended(0, 1), now=5)
    assert run.due(5 + PEER_SECONDS) == [Rung.INTERRUPT]
    see(run, ended(1, 1), now=8)
    assert [failure.rank for failure in run.verdict().failures] == [0]
    assert [stop.rank for stop in run.verdict().stopped] == [1]


@pytest.mark.parametrize("event", [Interrupted(rank=1), failed(1), Exited(rank=1, code=3)])
def test_what_a_rank_says_after_it_was_told_to_end_is_no_failure(event):
    run = course()
    see(run, failed(0), ended(0, 1))
    run.due(1)
    see(run, event, ended(1, 1))
    verdict = run.verdict()
    assert [failure.rank for failure in verdict.failures] == [0]
    assert [(stop.rank, stop.by) for stop in verdict.stopped] == [(1, "interrupt")]


def test_a_death_after_it_was_told_to_end_is_no_failure():
    run = course(1)
    run.interrupt(0)
    run.due(0)
    see(run, ended(0, -signal.SIGSEGV))
    assert (run.verdict().ending, run.verdict().failures) == ("interrupted", ())


@pytest.mark.parametrize(
    ("exitcode", "by"), [(1, "interrupt"), (-signal.SIGTERM, "SIGTERM"), (-signal.SIGKILL, "SIGKILL")]
)
def test_a_stop_says_by_what(exitcode, by):
    run = course(1)
    run.stop(0)
    run.due(10)
    see(run, ended(0, exitcode))
    assert run.verdict().stopped[0].by == by


def test_a_death_without_words_is_a_failure():
    run = course(1)
    see(run, ended(0, -signal.SIGKILL))
    assert isinstance(run.verdict().failures[0], Died)
    assert run.verdict().ending == "failed"


def test_a_death_after_last_words_is_told_once():
    run = course(1)
    see(run, Exited(rank=0, code=3), ended(0, 3))
    assert [type(failure) for failure in run.verdict().failures] == [Quit]


def test_a_crash_after_the_result_is_a_failure():
    run = course(1)
    see(run, result(0), ended(0, -signal.SIGSEGV))
    assert run.verdict().failures[0].exitcode == -signal.SIGSEGV


def test_a_rank_that_has_finished_is_not_stopped():
    run = course(2)
    see(run, result(0), failed(1), ended(1, 1))
    run.due(1)
    see(run, ended(0, -signal.SIGINT))
    assert run.verdict().stopped == ()


def test_a_failure_before_the_body_is_one_of_preparing():
    run = course(1)
    see(run, Failed(rank=0, report=failed(0).report, preparing=True))
    assert isinstance(run.verdict().failures[0], Raised)
    assert run.verdict().failures[0].preparing


def test_the_timeout_counts_from_the_first_body():
    run = course(timeout=10)
    assert run.next_time() is None
    see(run, Started(rank=1), now=5)
    see(run, Started(rank=0), now=9)
    assert run.due(14.9) == []
    assert run.due(15) == [Rung.INTERRUPT]
    assert run.verdict().ending == "timed out"


def test_a_run_that_is_ending_does_not_time_out_as_well():
    run = course(timeout=10)
    see(run, Started(rank=0), failed(0))
    run.due(1)
    run.due(11)
    assert run.verdict().ending == "failed"


def test_an_interrupt_ends_a_failed_run_faster_but_it_stays_failed():
    run = course(grace=600)
    see(run, failed(0))
    run.interrupt(0.01)
    assert run.due(0.01) == [Rung.INTERRUPT]
    run.interrupt(0.02)
    assert run.due(0.02) == [Rung.KILL]
    assert run.verdict().ending == "failed"


def test_the_verdict_knows_the_process_ids():
    run = course(2)
    see(run, failed(1))
    assert run.verdict().failures[0].pid == 101
