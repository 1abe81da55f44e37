"""The story that stays: complete, in rank order, the same for two equal runs."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from nbshm.events import Cleared, Display, Event, Note, Output, Started
from nbshm.failures.reports import Quit, Stopped
from nbshm.views.static import bundles, html_page, plain_text
from nbshm.views.story import Story


def out(rank: int, text: str, stream: str = "stdout") -> Output:
    return Output(rank=rank, stream=stream, text=text)


def shown(rank: int, **data: str) -> Display:
    names = {"png": "image/png", "html": "text/html", "plain": "text/plain", "svg": "image/svg+xml"}
    return Display(rank=rank, data={names[key]: value for key, value in data.items()})


def story(*events: Event, nprocs: int = 2) -> Story:
    tale = Story(nprocs)
    for event in events:
        tale.add(event)
    tale.finish()
    return tale


def text(*events: Event, nprocs: int = 2) -> str:
    return plain_text(story(*events, nprocs=nprocs).passages(), nprocs)


def html(*events: Event, nprocs: int = 2) -> str:
    return html_page(story(*events, nprocs=nprocs).passages(), nprocs)


def test_ranks_are_told_in_order_and_folded() -> None:
    events = [out(1, "start\nb\n"), out(0, "start\na\n"), Started(rank=0)]
    assert text(*events) == "[ranks 0-1] start\n[rank 0] a\n[rank 1] b"


def test_stderr_comes_after_stdout_and_is_named() -> None:
    assert text(out(0, "careful\n", "stderr"), out(0, "fine")) == "[rank 0] fine\n[rank 0 stderr] careful"


def test_one_rank_needs_no_name() -> None:
    assert text(out(0, "a\nb"), nprocs=1) == "a\nb"


def test_two_equal_runs_leave_the_same_whatever_the_order_of_arrival() -> None:
    def interleaved(seed: int) -> Sequence[Event]:
        queues = {
            (rank, stream): [out(rank, f"{stream} {rank} {number}\n", stream) for number in range(10)]
            for rank in range(3)
            for stream in ("stdout", "stderr")
        }
        events, generator = [], random.Random(seed)  # noqa: S311  # not for secrets
        while queues:
            key = generator.choice(sorted(queues))
            events.append(queues[key].pop(0))
            if not queues[key]:
                del queues[key]
        return events

    first, second = (story(*interleaved(seed), nprocs=3).passages() for seed in (1, 2))
    assert plain_text(first, 3) == plain_text(second, 3)
    assert html_page(first, 3) == html_page(second, 3)


def test_a_display_stands_between_the_lines_around_it() -> None:
    events = [out(0, "before"), shown(0, plain="<Figure>", png="AAAA"), out(0, "after\n")]
    assert text(*events) == "[rank 0] before\n[rank 0] <Figure>\n[rank 0] after"


def test_a_display_is_updated_in_its_place() -> None:
    first = Display(rank=0, data={"text/plain": "1"}, display_id="d")
    later = Display(rank=0, data={"text/plain": "2"}, display_id="d", update=True)
    unknown = Display(rank=0, data={"text/plain": "3"}, display_id="e", update=True)
    assert text(first, out(0, "x\n"), later, unknown) == "[rank 0] 2\n[rank 0] x"


def test_cleared_output_is_gone_at_once_or_with_the_next_output() -> None:
    assert text(out(0, "old\n"), Cleared(rank=0), out(0, "new\n")) == "[rank 0] new"
    waiting = [out(0, "old\n"), Cleared(rank=0, wait=True)]
    assert text(*waiting) == "[rank 0] old"
    assert text(*waiting, out(0, "new\n")) == "[rank 0] new"


def test_notes_are_told_once_before_everything() -> None:
    events = [
        out(0, "x\n"),
        Note(text="about the run"),
        Note(text="about the run"),
        Note(rank=1, text="mine"),
    ]
    assert text(*events) == "nbshm: about the run\n[rank 0] x\n[rank 1] nbshm: mine"


def test_of_a_failed_run_each_ranks_fate_is_told() -> None:
    tale = Story(4)
    tale.add(out(1, "working\n"))
    tale.finish([Quit(rank=1, pid=5, exitcode=3)], [Stopped(rank=rank) for rank in (0, 2, 3)])
    assert plain_text(tale.passages(), 4) == (
        "[ranks 0, 2, 3] stopped\n[rank 1] working\n[rank 1] ended by sys.exit with exit code 3"
    )


def test_the_last_line_may_still_be_unfinished() -> None:
    tale = Story(2)
    tale.add(out(0, "one\n"))
    assert tale.last_line(0) == "one"
    tale.add(out(0, "10%\r20%"))
    assert tale.last_line(0) == "20%"
    assert tale.last_line(1) == ""


def test_a_cut_says_where_the_whole_is() -> None:
    lines = "".join(f"{number}\n" for number in range(1000))
    assert "[rank 0] ... 800 lines left out; nbshm.last.output(rank) has them all ..." in text(out(0, lines))


def test_a_flood_leaves_little() -> None:
    flood = "".join(f"{number} {'x' * 200}\n" for number in range(300))
    page = html(*(out(rank, flood, stream) for rank in range(4) for stream in ("stdout", "stderr")), nprocs=4)
    assert len(page) < 4 * 300_000


def test_what_a_rank_printed_cannot_run_in_the_page() -> None:
    page = html(out(0, "<script>alert(1)</script><img src=x onerror=alert(1)>\n"), Note(text="<b>"))
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize("kind", ["plain", "svg", "png"])
def test_a_picture_cannot_run_in_the_page(kind: str) -> None:
    evil = '"><script>alert(1)</script>'
    page = html(shown(0, **{"plain": evil, kind: evil}))
    assert "<script" not in page


def test_pictures_are_in_the_page_with_their_size_and_their_text() -> None:
    picture = Display(
        rank=1,
        data={"image/png": "AA\nAA", "text/plain": "<Figure>"},
        metadata={"image/png": {"width": 40, "height": '30" onload="x'}},
    )
    page = html(picture)
    assert '<img src="data:image/png;base64,AAAA" alt="&lt;Figure&gt;" width="40">' in page


def test_rich_displays_are_outputs_of_their_own_after_their_rank() -> None:
    events = [out(0, "a\n"), shown(1, html="<table>", plain="table"), out(1, "b\n")]
    outputs = bundles(story(*events).passages(), 2)
    assert [output.data["text/plain"] for output in outputs] == [
        "[rank 0] a",
        "[rank 1]",
        "table",
        "[rank 1] b",
    ]
    assert outputs[2].data["text/html"] == "<table>"


def test_the_page_is_complete_without_its_styles() -> None:
    page = html(out(0, "a\nb\n"), out(1, "c\n", "stderr"))
    body = page.partition("</style>")[2]
    assert "<div>rank 0</div><pre" in body
    assert ">a\nb\n</pre>" in body
    assert "<div>rank 1 stderr</div>" in body
