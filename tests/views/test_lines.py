"""Chunks become lines; equal lines of several ranks become one."""

from __future__ import annotations

import pytest

from nbshm.events import Output
from nbshm.views.lines import FOLD_SECONDS, FoldedLine, Folder, Line, LineAssembler


def chunk(text: str, rank: int = 0, stream: str = "stdout") -> Output:
    return Output(rank=rank, stream=stream, text=text)


def texts(lines: list[Line]) -> list[str]:
    return [line.text for line in lines]


@pytest.mark.parametrize(
    ("chunks", "lines", "rest"),
    [
        (["a\nb\n"], ["a", "b"], []),
        (["a", "b\n", "c"], ["ab"], ["c"]),
        (["\n\n"], ["", ""], []),
        (["10%\r50%\r100%\n"], ["100%"], []),
        (["10%\r", "50%\r", "100%\r"], [], ["100%"]),
        (["dos\r\n", "unix\n"], ["dos", "unix"], []),
        (["dos\r", "\nunix\n"], ["dos", "unix"], []),
        (["\r 10%", "\r 20%", "\r100%", "\n"], ["100%"], []),
        (["bar\r\nnext"], ["bar"], ["next"]),
        (["  indented \n"], ["  indented "], []),
    ],
)
def test_chunks_become_whole_lines(chunks: list[str], lines: list[str], rest: list[str]) -> None:
    assembler = LineAssembler()
    assert [text for each in chunks for text in texts(assembler.feed(chunk(each)))] == lines
    assert texts(assembler.flush(0)) == rest
    assert texts(assembler.flush(0)) == []


def test_streams_and_ranks_do_not_mix() -> None:
    assembler = LineAssembler()
    for rank in (0, 1):
        for stream in ("stdout", "stderr"):
            assembler.feed(chunk(f"{rank} {stream}", rank, stream))
    assert assembler.feed(chunk("!\n", 1, "stderr")) == [Line(rank=1, stream="stderr", text="1 stderr!")]
    assert texts(assembler.flush_all()) == ["0 stdout", "0 stderr", "1 stdout"]


def test_one_stream_can_be_flushed_alone() -> None:
    assembler = LineAssembler()
    assembler.feed(chunk("out"))
    assembler.feed(chunk("err", stream="stderr"))
    assert texts(assembler.flush(0, "stdout")) == ["out"]
    assert texts(assembler.flush(0)) == ["err"]


def test_the_state_of_an_unfinished_line_can_be_seen() -> None:
    assembler = LineAssembler()
    assembler.feed(chunk("10%\r20%\r"))
    assert assembler.unfinished(0) == "20%"
    assert assembler.unfinished(1) == ""


def test_a_progress_bar_without_end_takes_no_memory() -> None:
    assembler = LineAssembler()
    for step in range(10_000):
        assembler.feed(chunk(f"\r{step:>100}"))
    assert sum(len(rest) for rest in assembler._pending.values()) < 300


def test_a_line_without_end_is_given_out_in_long_pieces() -> None:
    assembler = LineAssembler()
    lines = [line for _ in range(50) for line in assembler.feed(chunk("x" * 65536))]
    assert {len(line.text) for line in lines} == {1 << 20}
    assert sum(len(line.text) for line in [*lines, *assembler.flush(0)]) == 50 * 65536


def line(rank: int, text: str, stream: str = "stdout") -> Line:
    return Line(rank=rank, stream=stream, text=text)


def told(folded: list[FoldedLine]) -> list[tuple[tuple[int, ...], str]]:
    return [(each.ranks, each.text) for each in folded]


def test_equal_lines_within_the_time_are_one() -> None:
    folder = Folder(4)
    for rank in (2, 0, 1):
        folder.add(line(rank, "hello"), rank * 0.01)
    assert told(list(folder.due(FOLD_SECONDS / 2))) == []
    assert told(list(folder.due(FOLD_SECONDS + 0.03))) == [((0, 1, 2), "hello")]


def test_a_line_that_all_ranks_have_said_waits_no_longer() -> None:
    folder = Folder(2)
    folder.add(line(0, "hello"), 0)
    folder.add(line(1, "hello"), 0)
    assert told(list(folder.due(0))) == [((0, 1), "hello")]


def test_the_only_rank_of_a_run_never_waits() -> None:
    folder = Folder(1)
    folder.add(line(0, "hello"), 0)
    assert told(list(folder.due(0))) == [((0,), "hello")]


def test_equal_lines_that_come_later_are_told_again() -> None:
    folder = Folder(2)
    folder.add(line(0, "hello"), 0)
    first = list(folder.due(1))
    folder.add(line(1, "hello"), 1)
    assert told([*first, *folder.rest()]) == [((0,), "hello"), ((1,), "hello")]


def test_the_same_text_on_the_other_stream_is_another_line() -> None:
    folder = Folder(2)
    folder.add(line(0, "hello"), 0)
    folder.add(line(1, "hello", "stderr"), 0)
    assert len(list(folder.rest())) == 2


def test_folding_keeps_the_order_of_each_rank() -> None:
    folder = Folder(2)
    for text in ("a", "b", "a"):
        folder.add(line(0, text), 0)
    for text in ("b", "a", "a", "c"):
        folder.add(line(1, text), 0)
    folded = list(folder.rest())
    for rank, said in ((0, ["a", "b", "a"]), (1, ["b", "a", "a", "c"])):
        assert [each.text for each in folded if rank in each.ranks] == said
    assert told(folded) == [((0,), "a"), ((0, 1), "b"), ((0, 1), "a"), ((1,), "a"), ((1,), "c")]


def test_a_rank_that_repeats_itself_is_not_folded_with_itself() -> None:
    folder = Folder(2)
    for _ in range(3):
        folder.add(line(0, "tick"), 0)
    folder.add(line(1, "tick"), 0)
    assert told(list(folder.rest())) == [((0, 1), "tick"), ((0,), "tick"), ((0,), "tick")]


def test_a_flood_of_equal_lines_is_folded_in_linear_time() -> None:
    folder = Folder(4)
    for rank in range(4):
        for _ in range(20_000):
            folder.add(line(rank, "same"), 0)
    assert [each.ranks for each in folder.rest()] == [(0, 1, 2, 3)] * 20_000
