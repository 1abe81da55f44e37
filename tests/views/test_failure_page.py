"""The failure of a run in the page: where, what, with which values; nothing twice, nothing that can run."""

from __future__ import annotations

import json
import linecache
import re

from nbshm.failures.reports import Died, Raised, RankFailure, Stopped
from nbshm.failures.tracebacks import report_exception
from nbshm.views.failure_page import failure_bundle, failure_html
from nbshm.worker.descriptions import Describer

CELL = "/tmp/ipykernel_1/7.py"  # noqa: S108  # as ipykernel names cells; nothing is there


def raised(source: str, rank: int = 0, **names) -> Raised:
    """Run source as cell 7 in a rank, and return its failure."""
    linecache.cache[CELL] = (len(source), None, source.splitlines(keepends=True), CELL)
    try:
        exec(compile(source, CELL, "exec"), names | {"rank": rank, "json": json})  # noqa: S102
    except Exception as error:  # noqa: BLE001
        report = report_exception(
            error.with_traceback(error.__traceback__.tb_next), cells={CELL: 7}, describe=Describer()
        )
        return Raised(rank=rank, pid=1, report=report)
    raise AssertionError("nothing was raised")


def page(*failures: RankFailure, stopped: tuple[int, ...] = ()) -> str:
    return failure_html(failures, [Stopped(rank=rank) for rank in stopped]).partition("</style>")[2]


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_the_heading_names_cell_line_and_ranks() -> None:
    html = page(raised("1 / 0", 2), stopped=(0, 1))
    assert words(html).startswith("rank 2 failed at In [7] line 1; ranks 0-1 were stopped. In [7] line 1")
    assert "ZeroDivisionError: division by zero" in html


def test_the_failing_expression_is_marked_in_its_line() -> None:
    html = page(raised("é = 0\nif True:\n    x = 1 + 1 / é  # <b>\n"))
    assert "→ 3      x = 1 + <mark>1 / é</mark>  # &lt;b&gt;" in html
    assert "  2  if True:" in html


def test_the_values_of_names_can_be_opened() -> None:
    html = page(raised("def share(total, ranks):\n    return total / ranks\nparts = [1, 2]\nshare(5, 0)"))
    assert "<summary>values</summary>" in html
    assert all(f"<td>{name}</td><td>{value}</td>" in html for name, value in {"total": 5, "ranks": 0}.items())


def test_frames_of_libraries_are_folded() -> None:
    html = page(raised("json.loads('{')"))
    (folded,) = re.findall(r"<details><summary>(\d+ frames in [^<]*)</summary>", html)
    assert "decoder.py" in folded


def test_failures_of_several_ranks_at_one_place_are_told_once_with_their_other_messages() -> None:
    html = page(*(raised("raise ValueError(rank // 2)", rank) for rank in range(4)))
    assert html.count("<mark>") == 1
    assert "ranks 0-3 failed" in html
    assert "ranks 2-3: ValueError: 1" in html


def test_other_messages_are_in_the_order_of_ranks_and_short() -> None:
    html = page(*(raised("raise ValueError(str(rank) * 300)", rank) for rank in (1, 3, 2)))
    lines = re.findall(r"<pre>(rank .: ValueError: .*)</pre>", html)
    assert lines == [f"rank {rank}: ValueError: {str(rank) * 200}…" for rank in (2, 3)]
    assert "1" * 300 in html


def test_the_root_cause_is_first_and_the_others_follow() -> None:
    death = Died(rank=1, pid=2, exitcode=-9, seconds=3.0)
    text = words(page(raised("1 / 0", 3), raised("json.loads('{')", 0), death))
    order = [
        "rank 3 failed at In [7] line 1.",
        "ZeroDivisionError",
        "rank 0 failed at In [7] line 1, too.",
        "SIGKILL",
    ]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)


def test_causes_notes_and_members_of_groups_are_told() -> None:
    chained = page(raised("try:\n    1 / 0\nexcept Exception as e:\n    raise KeyError('k') from e"))
    order = [words(chained).index(part) for part in ("division by zero", "direct cause", "KeyError: ")]
    assert order == sorted(order)
    during = page(raised("try:\n    1 / 0\nexcept Exception as e:\n    raise KeyError('k')"))
    assert "While the above exception was handled" in during
    noted = page(raised("e = ValueError()\ne.__notes__ = ['see <here>']\nraise e"))
    assert "see &lt;here&gt;" in noted


def test_nothing_can_run_in_the_page() -> None:
    evil = "<script>alert(1)</script>"
    html = page(raised(f"text = '{evil}'\nraise ValueError(text)"))
    assert "<script" not in html


def test_a_runaway_recursion_is_shown_once() -> None:
    html = page(raised("def f(n):\n    return f(n + 1)\nf(0)"))
    assert html.count('class="place"') == 2
    assert "again and again, in the same line" in html


def test_a_recursion_of_several_functions_is_cut() -> None:
    html = page(raised("def f(n):\n    return g(n)\ndef g(n):\n    return f(n)\nf(0)"))
    assert html.count('class="place"') == 30
    assert "frames in the middle are left out" in html


def test_a_recursion_that_comes_to_an_end_is_shown_whole() -> None:
    html = page(raised("def f(n):\n    return f(n - 1) if n else 1 / n\nf(2)"))
    assert [f"<td>n</td><td>{n}</td>" in html for n in (2, 1, 0)] == [True] * 3


def test_what_failed_first_is_said_once_also_where_others_follow() -> None:
    assert page(raised("1 / 0", 3), raised("json.loads('{')", 0)).count("rank 3 failed") == 1


def test_the_twin_is_plain_text() -> None:
    plain = failure_bundle([raised("1 / 0")], []).data["text/plain"]
    assert plain.startswith("rank 0 failed at In [7] line 1.")
    assert "ZeroDivisionError" in plain
