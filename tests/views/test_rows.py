"""The live view's rows follow the ranks."""

from __future__ import annotations

import os

from nbshm.events import (
    Ended,
    Event,
    Exited,
    GpuMemory,
    Interrupted,
    Progress,
    Result,
    Resumed,
    Started,
    Waiting,
)
from nbshm.jobs import Parcel
from nbshm.views.gauges import Usage
from nbshm.views.paces import Pace
from nbshm.views.rows import Row, Rows
from nbshm.views.table import head_html, summary, table_html


def row(*events: Event, now: float = 10.0) -> Row:
    rows = Rows(1, 0.0)
    for time, event in enumerate(events, start=1):
        rows.add(event, float(time))
    return rows.rows(now, ["last words"])[0]


def shown(rank: int = 0, **facts) -> Row:
    known = {"state": "running", "detail": "", "seconds": 1.0, "last_line": ""}
    return Row(rank=rank, **(known | facts))


def fits(done: float, total: float | None, **facts) -> Pace:
    return Pace(label="fits", done=done, total=total, **({"rate": None} | facts))


def test_a_rank_starts_then_runs_from_the_start_of_its_body() -> None:
    assert (row().state, row().seconds) == ("starting", 10.0)
    running = row(Started(rank=0))
    assert (running.state, running.seconds, running.last_line) == ("running", 9.0, "last words")


def test_a_rank_waits_and_goes_on() -> None:
    waiting = row(Started(rank=0), Waiting(rank=0, at="barrier"))
    assert (waiting.state, waiting.detail) == ("waiting", "at the barrier")
    locked = row(Started(rank=0), Waiting(rank=0, at="the run's lock"))
    assert (locked.state, locked.detail) == ("waiting", "for the run's lock")
    resumed = row(Started(rank=0), Waiting(rank=0, at="barrier"), Resumed(rank=0))
    assert (resumed.state, resumed.detail) == ("running", "")


def test_a_finished_rank_stays_finished_and_its_time_stands_still() -> None:
    result = Result(rank=0, parcel=Parcel(pickled=b""))
    done = row(Started(rank=0), result, Ended(rank=0, exitcode=0, seconds=1), now=99.0)
    assert (done.state, done.seconds) == ("finished", 1.0)


def test_ends_are_told_apart() -> None:
    killed = row(Started(rank=0), Ended(rank=0, exitcode=-9, seconds=1))
    assert (killed.state, killed.detail) == ("died", "SIGKILL")
    assert row(Started(rank=0), Interrupted(rank=0)).state == "stopped"
    exited = row(Started(rank=0), Exited(rank=0, code=3), Ended(rank=0, exitcode=3, seconds=1))
    assert (exited.state, exited.detail) == ("failed", "exit code 3")


def test_a_row_has_the_loops_that_its_rank_is_in() -> None:
    outer = Progress(rank=0, loop=0, label="epoch", done=1, total=3)
    inner = Progress(rank=0, loop=1, label="batch", done=5, total=9)
    assert [pace.label for pace in row(Started(rank=0), outer, inner).paces] == ["epoch", "batch"]


def test_progress_is_a_bar_and_words() -> None:
    html = table_html([shown(paces=(fits(30, 120, rate=2.0), fits(1, None, detail="loss=<3>")))])
    assert '<i style="width:25%"></i>' in html
    assert "fits 30/120 2/s 45 s left" in html
    assert "fits 1 loss=&lt;3&gt;" in html


def test_a_ranks_share_of_a_claim_is_of_the_whole() -> None:
    assert "fits 30 of 120 2/s</td>" in table_html([shown(paces=(fits(30, 120, rate=2.0, shared=0),))])


def test_usage_is_shown_with_gpus_only_where_there_is_one() -> None:
    usage = Usage(cpu=0.98, own=3 << 20, shared=5 << 30)
    html = table_html([shown(usage=usage)])
    assert all(f">{figure}</td>" in html for figure in ("98 %", "3 MiB", "5.0 GiB"))
    assert "GPU" not in html
    on_gpu = Usage(cpu=0.98, own=3 << 20, shared=5 << 30, gpu=7 << 30)
    assert ">7.0 GiB</td>" in table_html([shown(usage=usage), shown(1, usage=on_gpu)])


def test_what_a_rank_has_on_gpus_is_among_what_it_uses() -> None:
    usage = row(Started(rank=0, pid=os.getpid()), GpuMemory(rank=0, nbytes=7)).usage
    assert usage is not None
    assert usage.gpu == 7


def test_the_head_sums_up_states_progress_and_time_left() -> None:
    rows = [shown(rank, state=state) for rank, state in enumerate(["running"] * 3 + ["finished"])]
    assert summary(rows, fits(61, 100, rate=2.0)) == "3 of 4 running, 1 finished, 61 %, about 20 s left"
    assert summary(rows[:1], None) == "running"
    assert "12 s" in head_html(rows, None, 12.0)


def test_a_long_run_is_told_of_the_report() -> None:
    assert "report" not in head_html([shown()], None, 12.0)
    assert "nbshm.last.report()" in head_html([shown()], None, 31.0)


def test_nothing_can_run_in_a_row() -> None:
    evil = "\x1b[31m<script>alert(1)</script>"
    html = table_html(
        [shown(detail="<b>", last_line=evil, paces=(Pace(label="<i>", done=1, total=2, rate=1),))]
    )
    assert "<script" not in html
    assert "<b>" not in html
    assert "<i>" not in html
    assert "\x1b" not in html


def test_a_very_long_line_shows_its_end() -> None:
    html = table_html([shown(last_line="x" * 9999 + "end")])
    assert "xend" in html
    assert len(html) < 2000
