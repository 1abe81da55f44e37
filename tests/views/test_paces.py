"""How far ranks have come, each and together."""

from __future__ import annotations

from nbshm.events import Progress
from nbshm.views.paces import Paces


def said(rank: int, done: float, total: float | None = 10, **facts) -> Progress:
    return Progress(rank=rank, label="fits", done=done, total=total, **facts)


def followed(nprocs: int, *events: tuple[float, Progress]) -> Paces:
    paces = Paces(nprocs)
    for now, event in events:
        paces.add(event, now)
    return paces


def test_a_loop_has_a_rate_and_a_time_left() -> None:
    (pace,) = followed(1, (0.0, said(0, 0)), (2.0, said(0, 4))).of(0)
    assert (pace.rate, pace.fraction, pace.seconds_left) == (2.0, 0.4, 3.0)


def test_nothing_is_said_about_the_time_left_before_anything_is_done() -> None:
    (pace,) = followed(1, (0.0, said(0, 0)), (2.0, said(0, 0))).of(0)
    assert (pace.rate, pace.seconds_left) == (None, None)
    (endless,) = followed(1, (0.0, said(0, 0, None)), (2.0, said(0, 4, None))).of(0)
    assert (endless.rate, endless.fraction, endless.seconds_left) == (2.0, None, None)


def test_a_loop_of_nothing_is_done() -> None:
    assert followed(1, (0.0, said(0, 0, 0))).of(0)[0].fraction == 1.0


def test_an_inner_loop_goes_when_it_ends_and_an_outer_one_when_another_begins() -> None:
    paces = followed(1, (0.0, said(0, 1, loop=0)), (1.0, said(0, 2, loop=1)))
    paces.add(said(0, 10, loop=1, ended=True), 2.0)
    assert len(paces.of(0)) == 1
    paces.add(said(0, 10, loop=0, ended=True), 3.0)
    assert [pace.done for pace in paces.of(0)] == [10]
    paces.add(said(0, 3, loop=2), 4.0)
    assert [pace.done for pace in paces.of(0)] == [3]


def test_all_together_have_done_the_sum_and_need_as_long_as_the_slowest() -> None:
    whole = followed(2, (0.0, said(0, 0)), (0.0, said(1, 0)), (1.0, said(0, 5)), (1.0, said(1, 1))).whole()
    assert whole is not None
    assert (whole.fraction, whole.seconds_left) == (0.3, 9.0)


def test_a_rank_that_has_finished_has_done_its_part() -> None:
    whole = followed(2, (0.0, said(0, 0)), (1.0, said(0, 5)), (0.0, said(1, 0))).whole(finished=[1])
    assert whole is not None
    assert (whole.fraction, whole.seconds_left) == (0.75, 1.0)


def test_of_a_claim_all_ranks_together_do_everything() -> None:
    paces = followed(
        2,
        (0.0, said(0, 0, shared=0)),
        (0.0, said(1, 0, shared=0)),
        (2.0, said(0, 3, shared=0)),
        (2.0, said(1, 1, shared=0)),
    )
    whole = paces.whole()
    assert whole is not None
    assert (whole.done, whole.total, whole.rate, whole.seconds_left) == (4, 10, 2.0, 3.0)


def test_a_claim_that_some_ranks_have_left_is_still_told_whole() -> None:
    paces = followed(
        2,
        (0.0, said(0, 0, shared=0)),
        (0.0, said(1, 0, shared=0)),
        (1.0, said(0, 6, shared=0, ended=True)),
        (1.0, said(0, 0, 100, loop=1, shared=1)),
        (2.0, said(1, 3, shared=0)),
    )
    whole = paces.whole()
    assert whole is not None
    assert (whole.done, whole.total) == (9, 10)


def test_where_no_loop_has_an_end_nothing_is_said_of_all() -> None:
    assert followed(1, (0.0, said(0, 0, None))).whole() is None
    assert Paces(3).whole() is None
