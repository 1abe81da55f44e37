"""How a run's time was spent."""

from __future__ import annotations

import re

from kernels import Kernel

from nbshm.events import Ended, Result, Resumed, Started, Waiting
from nbshm.jobs import Parcel
from nbshm.runs.time_report import TimeReport
from nbshm.runs.times import RankTimes, Times, balance

RESULT = Parcel(pickled=b"")


def test_each_rank_has_times_that_make_up_the_whole_run() -> None:
    times = Times(2, 10.0)
    for now, event in [
        (11.0, Started(rank=0)),
        (12.0, Started(rank=1)),
        (14.0, Waiting(rank=0, at="barrier")),
        (15.0, Resumed(rank=0)),
        (16.0, Result(rank=0, parcel=RESULT)),
        (16.5, Ended(rank=0, exitcode=0, seconds=7)),
        (20.0, Result(rank=1, parcel=RESULT)),
    ]:
        times.see(event, now)
    first, second = times.by_rank()
    assert first == RankTimes(starting=1.0, working=4.0, waiting=1.0, over=4.0)
    assert second == RankTimes(starting=2.0, working=8.0, waiting=0.0, over=0.0)
    assert first.whole == second.whole == 10.0
    assert balance([first, second]) == 0.75


def test_a_rank_that_never_began_was_starting_until_the_end() -> None:
    times = Times(2, 0.0)
    times.see(Started(rank=0), 1.0)
    times.see(Ended(rank=0, exitcode=-9, seconds=2), 3.0)
    assert times.by_rank()[1] == RankTimes(starting=3.0, working=0.0, waiting=0.0, over=0.0)


def test_the_report_is_a_table_and_a_picture() -> None:
    report = TimeReport(
        (
            RankTimes(starting=1.0, working=4.0, waiting=1.0, over=4.0),
            RankTimes(starting=2.0, working=8.0, waiting=0.0, over=0.0),
        )
    )
    assert repr(report).splitlines() == [
        "rank  start-up   work  waiting  over early",
        "   0     1.0 s  4.0 s    1.0 s       4.0 s  ····████████████████░░░░",
        "   1     2.0 s  8.0 s    0.0 s       0.0 s  ········████████████████████████████████",
        (
            "Work is 60 % of the ranks' time; on average a rank worked "
            "75 % as long as the one that worked longest."
        ),
        "· start-up, █ work, ░ waiting (for a barrier, a lock, a queue)",
    ]
    html = report._repr_html_()
    assert html.count("<tr>") == 3
    assert "width:40.0%;background:var(--jp-brand-color1" in html


def test_a_run_without_any_time_has_a_report() -> None:
    assert "nothing" in repr(TimeReport((RankTimes(starting=0, working=0, waiting=0, over=0),)))


def test_the_last_run_reports_its_times(shared_notebook: Kernel) -> None:
    shared_notebook.run("%%parallel nprocs=2\nimport time\nif rank: time.sleep(0.3)\nnbshm.barrier()").check()
    text = shared_notebook.run("import nbshm\nnbshm.last.report()").check().result["text/plain"]
    assert re.search(r"^ +0 .*░", text, re.MULTILINE)
    first, second = shared_notebook.value("[one.waiting for one in nbshm.last.report().ranks]")
    assert first > 0.1 > second


def test_a_wait_for_the_lock_is_no_work(shared_notebook: Kernel) -> None:
    cell = """%%parallel nprocs=2
import time
if rank == 0:
    with nbshm.lock():
        nbshm.barrier()
        time.sleep(1)
else:
    nbshm.barrier()
    with nbshm.lock(): pass
"""
    shared_notebook.run(cell).check()
    first, second = shared_notebook.value("[one.waiting for one in nbshm.last.report().ranks]")
    assert second - first > 0.3
