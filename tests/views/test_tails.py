"""What is shown of the output while ranks run."""

from __future__ import annotations

from nbshm.views.lines import Line
from nbshm.views.tails import KEPT_BYTES, KEPT_LINES, Tails


def tails(*lines: tuple[int, str], nprocs: int = 2, stream: str = "stdout") -> Tails:
    kept = Tails(nprocs)
    for rank, text in lines:
        kept.add(rank, [Line(rank=rank, stream=stream, text=text)])
    return kept


def test_each_rank_has_a_tail_and_all_together_have_one() -> None:
    kept = tails((0, "a"), (1, "b"))
    assert "a</pre>" in kept.of(0)
    assert "b" not in kept.of(0)
    assert "[rank 0] a\n[rank 1] b</pre>" in kept.of_all()


def test_equal_lines_next_to_each_other_are_one() -> None:
    assert "[ranks 0-2] same</pre>" in tails((0, "same"), (2, "same"), (1, "same"), nprocs=3).of_all()


def test_one_rank_needs_no_name() -> None:
    assert ">a</pre>" in tails((0, "a"), nprocs=1).of_all()


def test_only_the_last_lines_are_kept() -> None:
    kept = tails(*((0, f"line {number} of many") for number in range(1000)))
    assert "line 999 of" in kept.of(0)
    assert kept.of(0).count("of many") == KEPT_LINES
    assert kept.of_all().count("of many") == KEPT_LINES


def test_long_lines_are_cut_to_what_there_is_room_for() -> None:
    kept = tails((0, "x" * 2 * KEPT_BYTES), (0, "y" * KEPT_BYTES + "end"))
    assert "yend" in kept.of(0)
    assert len(kept.of(0)) < 1.1 * KEPT_BYTES


def test_nothing_grows_however_long_the_lines_are() -> None:
    kept = tails(*((0, "x" * KEPT_BYTES) for _ in range(50)))
    assert sum(len(line.text) for line in (*kept._ranks[0].lines, *kept._all.lines)) < 2 * KEPT_BYTES


def test_only_ranks_that_have_said_something_since_are_drawn_again() -> None:
    kept = tails((1, "b"))
    assert kept.take_changed() == [1]
    assert kept.take_changed() == []


def test_nothing_can_run_in_a_tail_and_colours_are_kept() -> None:
    html = tails((0, "\x1b[31mred<script>"), stream="stderr").of(0)
    assert "<script" not in html
    assert '<span class="ansi-red-fg">red&lt;script&gt;</span>' in html
    assert '<pre class="stderr">' in html
