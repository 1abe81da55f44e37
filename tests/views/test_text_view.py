"""Live text: whole lines, labelled, folded, on the right stream."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kernels import Kernel

from nbshm.events import Display, Ended, Event, Note, Output, Progress, Tick
from nbshm.views import text as text_module
from nbshm.views.choice import choose_view
from nbshm.views.text import TextView


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def view(clock: Clock, nprocs: int = 4) -> TextView:
    viewing = TextView(clock=clock)
    viewing.begin(nprocs, stop=print)
    return viewing


def out(rank: int, text: str, stream: str = "stdout") -> Output:
    return Output(rank=rank, stream=stream, text=text)


def show(viewing: TextView, *events: Event) -> None:
    for event in events:
        viewing.show(event)


def test_lines_are_labelled_and_written_while_the_run_goes_on(clock, capsys) -> None:
    viewing = view(clock)
    show(viewing, out(2, "hello\n"))
    assert capsys.readouterr().out == ""
    clock.now = 0.06
    show(viewing, Tick())
    assert capsys.readouterr().out == "[rank 2] hello\n"


def test_equal_lines_are_written_once(clock, capsys) -> None:
    viewing = view(clock)
    show(viewing, *(out(rank, "who\n") for rank in range(4)))
    assert capsys.readouterr().out == "[ranks 0-3] who\n"


def test_one_rank_is_not_labelled_and_never_waits(clock, capsys) -> None:
    show(view(clock, 1), out(0, "hello\n"))
    assert capsys.readouterr().out == "hello\n"


def test_stderr_stays_stderr(clock, capsys) -> None:
    viewing = view(clock)
    show(viewing, out(0, "bad\n", "stderr"), out(0, "good\n"))
    viewing.finish()
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("[rank 0] good\n", "[rank 0] bad\n")


def test_text_without_a_line_end_is_written_when_its_rank_ends(clock, capsys) -> None:
    viewing = view(clock)
    show(viewing, out(1, "no newline"), Ended(rank=1, exitcode=0, seconds=1.0))
    clock.now = 1
    show(viewing, Tick())
    assert capsys.readouterr().out == "[rank 1] no newline\n"


def test_finishing_writes_all_that_was_held(clock, capsys) -> None:
    viewing = view(clock)
    show(viewing, out(1, "held\nrest"))
    viewing.finish()
    viewing.finish()
    assert capsys.readouterr().out == "[rank 1] held\n[rank 1] rest\n"


def test_a_progress_bar_is_one_line(clock, capsys) -> None:
    viewing = view(clock)
    show(viewing, *(out(0, f"\r{step}%") for step in range(100)), out(0, "\n"))
    viewing.finish()
    assert capsys.readouterr().out == "[rank 0] 99%\n"


def test_progress_of_a_loop_that_lasts_is_told_now_and_then_and_when_it_ends(clock, capsys) -> None:
    viewing = view(clock)
    for done in range(1, 101):
        clock.now += 0.05
        show(viewing, Progress(rank=0, label="fits", done=done, total=100, ended=done == 100))
    viewing.finish()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) in (5, 6)
    assert lines[-1] == "[rank 0] fits 100/100"


def test_the_end_of_a_loop_is_told_once(clock, capsys) -> None:
    viewing = view(clock)
    for done, ended in ((0, False), (1, False), (2, False), (2, True)):
        show(viewing, Progress(rank=0, label="fits", done=done, total=2, ended=ended))
        clock.now += 2
    viewing.finish()
    assert capsys.readouterr().err == "[rank 0] fits 1/2\n[rank 0] fits 2/2\n"


def test_the_end_of_a_claim_is_told_with_its_last_rank(clock, capsys) -> None:
    viewing = view(clock)
    for done in (0, 5, 10):
        for rank in range(3):
            show(viewing, Progress(rank=rank, label="", done=done, total=30, shared=0, ended=done == 10))
        clock.now += 2
    viewing.finish()
    assert capsys.readouterr().err == "5/30\n20/30\n30/30\n"


def test_a_loop_that_is_over_within_a_second_is_not_told(clock, capsys) -> None:
    viewing = view(clock)
    for done in range(101):
        show(viewing, Progress(rank=0, label="fits", done=done, total=100, ended=done == 100))
    viewing.finish()
    assert capsys.readouterr().err == ""


def test_a_claim_is_told_as_what_all_ranks_have_done_of_it(clock, capsys) -> None:
    viewing = view(clock)
    for rank in (0, 1):
        show(viewing, Progress(rank=rank, label="fits", done=0, total=100, shared=0))
    clock.now += 2
    show(viewing, Progress(rank=0, label="fits", done=30, total=100, shared=0))
    clock.now += 2
    show(viewing, Progress(rank=1, label="fits", done=20, total=100, shared=0))
    assert capsys.readouterr().err == "fits 30/100\nfits 50/100\n"


def test_notes_are_told_on_stderr(clock, capsys) -> None:
    viewing = view(clock)
    show(viewing, Note(text="about the run"), Note(rank=1, text="about rank 1"))
    viewing.finish()
    assert capsys.readouterr().err == "nbshm: about the run\n[rank 1] nbshm: about rank 1\n"


def test_a_display_comes_after_what_its_rank_said_before(clock, capsys, monkeypatch) -> None:
    monkeypatch.setattr(text_module, "publish", lambda bundle, **_: print(bundle.data["text/plain"]))
    viewing = view(clock)
    show(viewing, out(1, "before"), Display(rank=1, data={"text/plain": "<Figure>"}), out(1, "after\n"))
    viewing.finish()
    assert capsys.readouterr().out == "[rank 1] before\n[rank 1]\n<Figure>\n[rank 1] after\n"


def test_a_terminal_gets_text() -> None:
    assert type(choose_view(SimpleNamespace())) is TextView


def test_displays_are_updated_and_cleared_where_a_cell_is_captured(shared_notebook: Kernel) -> None:
    update = "h = display('first', display_id='same')\nh.update('second')"
    shared_notebook.run(f"%%capture kept\n%%parallel nprocs=2\n{update}").check()
    shared_notebook.run("ids = {o.transient['display_id'] for o in kept.outputs}").check()
    shown = "sorted((o.update, o.data['text/plain']) for o in kept.outputs)"
    assert shared_notebook.value(shown) == [(False, "'first'")] * 2 + [(True, "'second'")] * 2
    assert shared_notebook.value("sorted(ids)") == ["same of rank 0", "same of rank 1"]
    clear = "from IPython.display import clear_output\ndisplay(1); clear_output(); display(2)"
    shared_notebook.run(f"%%capture kept\n%%parallel nprocs=1\n{clear}").check()
    assert shared_notebook.value("[o.data['text/plain'] for o in kept.outputs]") == ["2"]
