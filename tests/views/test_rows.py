"""The live view's rows follow the ranks."""

from __future__ import annotations

from nbshm.events import Ended, Event, Exited, Interrupted, Progress, Result, Resumed, Started, Waiting
from nbshm.jobs import Parcel
from nbshm.views.rows import Row, Rows, rows_html


def row(*events: Event, now: float = 10.0) -> Row:
    rows = Rows(1, 0.0)
    for time, event in enumerate(events, start=1):
        rows.add(event, float(time))
    return rows.row(0, now, "last words")


def test_a_rank_starts_then_runs_from_the_start_of_its_body() -> None:
    assert (row().state, row().seconds) == ("starting", 10.0)
    running = row(Started(rank=0))
    assert (running.state, running.seconds, running.last_line) == ("running", 9.0, "last words")


def test_a_rank_waits_and_goes_on() -> None:
    waiting = row(Started(rank=0), Waiting(rank=0, at="barrier"))
    assert (waiting.state, waiting.detail) == ("waiting", "barrier")
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


def test_progress_is_shown_before_the_last_line() -> None:
    html = rows_html([row(Started(rank=0), Progress(rank=0, label="fits", done=3, total=10))])
    assert "fits 3/10 last words" in html
    assert "3/10" not in rows_html([row(Progress(rank=0, label="", done=3, total=None))])


def test_nothing_can_run_in_a_row() -> None:
    evil = "\x1b[31m<script>alert(1)</script>"
    html = rows_html([Row(state="running", detail="<b>", seconds=1.0, progress="<i>", last_line=evil)])
    assert "<script" not in html
    assert "<b>" not in html
    assert "<i>" not in html
    assert "\x1b" not in html


def test_a_very_long_line_shows_its_end() -> None:
    html = rows_html(
        [Row(state="running", detail="", seconds=1.0, progress="", last_line="x" * 9999 + "end")]
    )
    assert "xend" in html
    assert len(html) < 3000
