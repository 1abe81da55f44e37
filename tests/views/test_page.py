"""The page in a real kernel: what is published, when, and what stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from kernels import Kernel, kernel
from nbclient import NotebookClient

SETUP = """
from nbshm.events import Display, Output, Started, Tick
from nbshm.views.choice import choose_view
from nbshm.views.page import PageView

class Clock:
    now = 0.0
    def __call__(self):
        return self.now

def out(rank, text):
    return Output(rank=rank, stream="stdout", text=text)

def view(nprocs=2):
    global clock
    clock = Clock()
    page = PageView(clock=clock)
    page.begin(nprocs, stop=print)
    return page

def short(*events):
    page = view()
    for event in events:
        page.show(event)
    page.finish()

def long(*events):
    page = view()
    for event in events:
        page.show(event)
    clock.now = 1.0
    page.show(Tick())
    page.finish()
"""
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def page_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    directory = tmp_path_factory.mktemp("page")
    with kernel(directory, load=False) as running:
        root = Path(__file__).parents[2]
        running.run(f"import sys; sys.path.insert(0, {str(root)!r})").check()
        running.run(SETUP).check()
        yield running


def test_a_short_run_shows_its_story_at_once_as_one_output(page_kernel: Kernel) -> None:
    reply = page_kernel.run("short(out(0, 'a\\n'), out(1, 'a\\n'))").check()
    (output,) = reply.displays
    assert output["text/plain"] == "[ranks 0-1] a"
    assert ">a\n</pre>" in output["text/html"]


def test_a_short_silent_run_leaves_no_output(page_kernel: Kernel) -> None:
    assert page_kernel.run("short()").check().displays == []


def test_a_short_run_imports_no_widgets(page_kernel: Kernel) -> None:
    with kernel(page_kernel.directory, load=False) as fresh:
        root = Path(__file__).parents[2]
        fresh.run(f"import sys; sys.path.insert(0, {str(root)!r})\n{SETUP}").check()
        fresh.run("short(out(0, 'a'))").check()
        assert fresh.value("'ipywidgets' in sys.modules") is False


def test_a_long_run_shows_a_live_view_that_becomes_the_story(page_kernel: Kernel) -> None:
    reply = page_kernel.run("long(out(0, 'a\\n'))").check()
    live, story = reply.displays
    assert WIDGET in live
    assert live["text/plain"] == "2 ranks are running"
    assert story["text/plain"] == "[rank 0] a"


def test_what_stays_does_not_depend_on_how_long_it_took(page_kernel: Kernel) -> None:
    events = "out(0, 'a\\n'), Display(rank=1, data={'text/html': '<b>', 'text/plain': 'b'}), out(1, 'c')"
    short = page_kernel.run(f"short({events})").check().displays
    long = page_kernel.run(f"long({events})").check().displays
    assert long[1:] == short
    assert [output["text/plain"] for output in short] == ["[rank 0] a", "[rank 1]", "b", "[rank 1] c"]


def test_no_widget_is_left(page_kernel: Kernel) -> None:
    page_kernel.run("long(out(0, 'a\\n'))").check()
    assert (
        page_kernel.run("from ipywidgets import Widget, widget; print(len(widget._instances))").stdout
        == "0\n"
    )


def test_the_live_view_is_redrawn_four_times_a_second_at_most(page_kernel: Kernel) -> None:
    source = """
from nbshm.views import page as page_module
drawn = []
class Counting(page_module.LiveView):
    def update(self, piece, html, kinds=()):
        if piece == "table":
            drawn.append(html)
page_module.LiveView, original = Counting, page_module.LiveView
page = view()
for step in range(1000):
    clock.now = step / 1000
    page.show(out(0, f"{step}\\n"))
page.finish()
page_module.LiveView = original
"""
    page_kernel.run(source).check()
    assert page_kernel.value("len(drawn)") in (1, 2, 3, 4)


def test_finishing_twice_shows_the_story_once(page_kernel: Kernel) -> None:
    reply = page_kernel.run("page = view(); page.show(out(0, 'a\\n')); page.finish(); page.finish()").check()
    assert len(reply.displays) == 1


def test_a_kernel_gets_a_page_and_a_captured_cell_text(page_kernel: Kernel) -> None:
    assert page_kernel.run("print(type(choose_view(get_ipython())).__name__)").stdout == "PageView\n"
    captured = "%%capture cap\nkind = type(choose_view(get_ipython())).__name__"
    page_kernel.run(captured).check()
    assert page_kernel.value("kind") == "TextView"
    redirected = (
        "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n    " + captured[14:]
    )
    page_kernel.run(redirected).check()
    assert page_kernel.value("kind") == "TextView"


def test_a_captured_display_is_among_the_captured_outputs(page_kernel: Kernel) -> None:
    source = """%%capture cap
shown = choose_view(get_ipython())
shown.begin(2, stop=print)
shown.show(out(0, 'a\\n'))
shown.show(Display(rank=1, data={'text/plain': '<Figure>', 'image/png': 'AAAA'}))
shown.finish()
"""
    page_kernel.run(source).check()
    assert page_kernel.value("cap.stdout") == "[rank 0] a\n[rank 1]\n"
    assert page_kernel.value("cap.outputs[0].data") == {"text/plain": "<Figure>", "image/png": "AAAA"}


def test_a_saved_notebook_has_the_story_alone(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    cells = [f"import sys; sys.path.insert(0, {str(root)!r})\n{SETUP}", "long(out(0, 'a\\n'))", "long()"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": tmp_path}}).execute()
    (story,) = notebook.cells[1].outputs
    assert story.data["text/plain"] == "[rank 0] a"
    (nothing,) = notebook.cells[2].outputs
    assert nothing.data == {}
    assert "ranks are running" not in nbformat.writes(notebook)
    nbformat.validate(notebook)
