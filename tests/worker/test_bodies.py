"""Bodies run in a real worker's shell, in another process."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from body_client import body_server

from nbshm.events import Cleared, Display, Note
from nbshm.failures.packed_exceptions import unpack_exception
from nbshm.wire.markers import Merger
from nbshm.worker.bodies import BodyExited, BodyInterrupted


def test_the_value_is_that_of_the_last_expression(server):
    assert server.run("x = 20\nx + rank").end == 21


@pytest.mark.parametrize("cell", ["x = 1", "x = 1\nx;", "x = 1\nx ; # quiet", "# nothing", "", "None"])
def test_there_is_no_value_without_an_expression_or_with_a_semicolon(server, cell):
    assert server.run(cell).end is None


def test_of_a_runaway_recursion_the_module_is_looked_for_once(server):
    counting = (
        "import inspect\nlook, inspect.asked = inspect.getmodule, []\n"
        "inspect.getmodule = lambda *value: inspect.asked.append(value) or look(*value)\n"
        "def f(n):\n    return f(n + 1)\nf(0)"
    )
    assert "RecursionError" in server.run(counting).end.rendered
    assert 0 < server.run("import inspect\nlen(inspect.asked)").end < 100


def test_the_value_is_not_shown(server):
    reply = server.run("12345")
    assert (reply.out, reply.err, reply.events) == (b"", b"", [])


@pytest.mark.parametrize(
    ("interactivity", "shown", "value"),
    [("all", ["1", "2"], 3), ("last", [], 3), ("last_expr", [], 3), ("none", [], None)],
)
def test_values_are_shown_as_the_notebook_shows_them(server, interactivity, shown, value):
    reply = server.run("1\nx = 5\nif x:\n    2\nx - 2", interactivity=interactivity)
    assert ([event.data["text/plain"] for event in reply.events], reply.end) == (shown, value)


def test_values_in_a_last_statement_are_shown_before_the_last_of_them(server):
    reply = server.run("for i in (1, 2):\n    i", interactivity="last")
    assert ([event.data["text/plain"] for event in reply.events], reply.end) == (["1"], 2)
    assert server.run("x = 4", interactivity="last_expr_or_assign").end == 4


def test_libraries_see_that_nobody_types_here(server):
    assert server.run("import sys\nhasattr(sys, 'ps1')").end is False


def test_a_body_that_is_indented_as_a_whole_runs(server):
    assert server.run("    a = 1\n    a + 1").end == 2


def test_ipython_syntax_works(server):
    cell = "words = !echo alpha {rank}\nt = %timeit -o -q -n1 -r1 sum(range(10))\n(list(words), t.best >= 0)"
    assert server.run(cell).end == (["alpha 1"], True)


def test_a_command_writes_to_the_descriptors_after_what_was_printed(server):
    reply = server.run("import sys\nsys.stdout.write('one ')\n!echo two; exit 3\n_exit_code")
    assert (reply.out, reply.end) == (b"one two\n", 3)


def test_a_cell_magic_in_the_first_line_of_the_body_is_dispatched(server):
    reply = server.run("%%time\nx = 5\nx + 1")
    assert reply.end == 6
    assert b"Wall time" in reply.out


def test_a_cell_magic_below_blank_lines_is_dispatched(server):
    assert server.run("\n\n%%capture kept\nprint(7)").out == b""


def test_await_works_at_the_top_level(server):
    assert server.run("import asyncio\nawait asyncio.sleep(0, 'done')").end == "done"


def test_tasks_that_are_left_running_are_cancelled_and_told(server):
    cell = (
        "import asyncio\n"
        "async def work():\n"
        "    try:\n"
        "        await asyncio.sleep(60)\n"
        "    finally:\n"
        "        print('cleaned up')\n"
        "tasks = [asyncio.create_task(work()) for _ in range({})]\n"
        "await asyncio.sleep(0)"
    )
    one, two = server.run(cell.format(1)), server.run(cell.format(2))
    assert (one.out, two.out) == (b"cleaned up\n", b"cleaned up\ncleaned up\n")
    told = "{} that had come to In [3] line 5 {} still running when the body ended, and {} cancelled: "
    rest = "await what is to end."
    assert one.events == [Note(rank=1, text=told.format("a task", "was", "was") + rest)]
    assert two.events == [Note(rank=1, text=told.format("2 tasks", "were", "were") + rest)]
    assert server.run(cell.format(1) + "\nawait asyncio.sleep(0); tasks[0].cancel();").events == []


def test_code_may_run_an_event_loop_of_its_own(server):
    assert server.run("import asyncio\nasync def f(): return 8\nasyncio.run(f())").end == 8


def test_the_notebooks_own_history_names_are_left_alone(server):
    namespace = {"_": "kept", "Out": {3: "kept"}, "rank": 0}
    reply = server.run("(_, Out[3])\n5", namespace=namespace)
    assert (reply.names["_"], reply.names["Out"]) == ("'kept'", "{3: 'kept'}")


def test_ipythons_names_are_there(server):
    assert server.run("type(get_ipython()).__name__, list(In), dict(Out)").end == ("WorkerShell", [""], {})


def test_the_main_guard_is_true_and_there_is_no_file(server):
    assert server.run("__name__ == '__main__', '__file__' in globals()").end == (True, False)


def test_functions_of_the_body_have_source(server):
    assert server.run("import inspect\ndef f(): return 1\ninspect.getsource(f)").end == "def f(): return 1\n"


@pytest.mark.parametrize("call", ["sys.exit()", "sys.exit(0)", "exit()", "quit()", "exit(0)"])
def test_leaving_without_a_complaint_is_success(server, call):
    reply = server.run(f"import sys\n{call}\nraise ValueError")
    assert (reply.end, reply.out, reply.err) == (None, b"", b"")


def test_an_exit_code_is_told_with_its_line(server):
    assert server.run("import sys\n\nsys.exit(3)").end == BodyExited(code=3, text=None, line="In [3] line 4")


def test_an_exit_with_a_text_is_told_with_its_text(server):
    assert server.run("exit('no data')").end == BodyExited(code=1, text="no data", line="In [3] line 2")


def test_a_failure_is_shown_with_cell_line_and_highlighted_expression(server):
    reply = server.run("def f(a):\n    return 1 / a\n\nf(0) + 1")
    assert reply.shown.splitlines() == [
        "---------------------------------------------------------------------------",
        "ZeroDivisionError                         Traceback (most recent call last)",
        "Cell In[3], line 5",
        "      2 def f(a):",
        "      3     return 1 / a",
        "----> 5 f(0) + 1",
        "",
        "Cell In[3], line 3, in f(a)",
        "      2 def f(a):",
        "----> 3     return 1 / a",
        "",
        "ZeroDivisionError: division by zero",
    ]
    assert re.search(r"\x1b\[[0-9;]*43m/", reply.end.rendered), "the expression is not highlighted"
    assert reply.end.where == "In [3] line 3"


def test_lines_above_the_magic_count(server):
    reply = server.run("# the third line\nundefined_name", line=3)
    assert (reply.end.type_name, reply.end.where) == ("NameError", "In [3] line 3")


def test_a_syntax_error_has_its_line_and_caret(server):
    reply = server.run("y = 1\nx = = 3")
    assert reply.shown.splitlines() == [
        "  Cell In[3], line 3",
        "    x = = 3",
        "        ^",
        "SyntaxError: invalid syntax",
    ]
    assert reply.end.where == "In [3] line 3"


def test_a_return_outside_a_function_is_shown_without_the_compilers_frames(server):
    assert server.run("return 3").shown.startswith("  Cell In[3], line 2\n")


def test_a_syntax_error_in_code_that_ran_is_shown_with_its_frames(server):
    shown = server.run("exec('x = = 3')").shown
    assert "Cell In[3], line 2" in shown
    assert "SyntaxError" in shown


def test_a_cause_is_shown_above(server):
    cell = "try:\n    {}['missing']\nexcept KeyError as e:\n    raise RuntimeError('outer') from e"
    shown = server.run(cell).shown
    told = ["KeyError: 'missing'", "was the direct cause of", "RuntimeError: outer"]
    assert sorted(told, key=shown.index) == told


def test_a_context_is_shown_above(server):
    shown = server.run("try:\n    {}['missing']\nexcept KeyError:\n    int('no')").shown
    told = ["KeyError: 'missing'", "another exception occurred", "ValueError: invalid"]
    assert sorted(told, key=shown.index) == told


def test_a_context_that_is_suppressed_is_not_shown(server):
    shown = server.run("try:\n    {}['x']\nexcept KeyError:\n    raise OSError from None").shown
    assert "KeyError: 'x'" not in shown


@pytest.mark.skipif(sys.version_info < (3, 11), reason="groups came with Python 3.11")
def test_a_group_is_shown_with_its_members_and_notes(server):
    cell = (
        "def grouped():\n"
        "    noted = ValueError('second'); noted.add_note('look at shard 7')\n"
        "    try: 1 / 0\n"
        "    except ZeroDivisionError as e: raised = e\n"
        "    raise ExceptionGroup('two things', [TypeError('first'), noted, raised])\n"
        "grouped()"
    )
    shown = server.run(cell).shown
    told = ["two things (3 sub-exceptions)", "1 ---", "| TypeError: first", "2 ---", "| ValueError: second"]
    told += ["| look at shard 7", "3 ---", "|       5     except", "| ZeroDivisionError: division by zero"]
    assert [text for text in told if text not in shown] == []


def test_an_exception_that_cannot_say_what_it_is_is_reported(server):
    report = server.run("class Bad(Exception):\n    def __str__(self): raise ValueError\nraise Bad").end
    assert (report.type_name, report.message) == ("Bad", "<unprintable Bad object>")
    assert "Bad" in report.rendered


def test_an_exception_that_keeps_itself_from_being_told_is_reported_with_its_line(server):
    cell = "class Bad(Exception):\n    __notes__ = property(lambda self: int('no number'))\nraise Bad"
    report = server.run(cell).end
    assert "class '__main__.Bad'> was raised here" in report.message
    assert "ValueError: invalid literal" in report.message
    assert report.where == "In [3] line 4"  # below the magic's


def test_a_runaway_recursion_is_reported_short(server):
    report = server.run("def f(n): return f(n + 1)\nf(0)").end
    assert "skipping similar frames" in report.rendered
    assert len(report.rendered) < 10_000
    assert len(report.frames) <= 100


def test_a_keyboard_interrupt_of_the_code_itself_is_a_failure(server):
    report = server.run("raise KeyboardInterrupt('from the code')").end
    assert (report.type_name, report.message) == ("KeyboardInterrupt", "from the code")


def test_the_exception_comes_back_with_its_cause(server):
    report = server.run("try: 1 / 0\nexcept Exception as e: raise OSError(5, 'disk') from e").end
    error = unpack_exception(report.pickled)
    assert (type(error), error.errno, type(error.__cause__)) == (OSError, 5, ZeroDivisionError)


def test_own_frames_are_not_shown(server):
    reply = server.run("%timeit -n1 -r1 1 / 0")
    assert "nbshm" not in reply.shown
    assert "interactiveshell" not in reply.shown


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (
            "input('name? ')",
            "input() can't be used in a parallel cell: several processes run the cell at once",
        ),
        ("import getpass\ngetpass.getpass()", "getpass() can't be used in a parallel cell"),
        ("breakpoint()", "breakpoint() can't be used in a parallel cell"),
        ("import pdb\npdb.set_trace()", "pdb.set_trace() can't be used in a parallel cell"),
        ("%debug", "%debug can't be used in a parallel cell"),
        (
            "%%parallel nprocs=2\n1",
            "%%parallel can't be used in a parallel cell: this code already runs in one of",
        ),
    ],
)
def test_what_nobody_can_answer_is_refused_in_one_sentence(server, cell, message):
    report = server.run(cell).end
    assert report.message.startswith(message)
    assert "\n" not in report.message


def test_input_is_whole_again_after_the_body(server):
    server.run("1")
    assert server.run("import builtins, sys\nsys.breakpointhook is not sys.__breakpointhook__").end is True


def test_displays_become_events_in_order_with_the_text(server):
    cell = "print('a')\ndisplay(1)\nprint('b', end='')\ndisplay(2)\nprint('c')"
    reply = server.run(cell, mark="t1")
    merger = Merger("t1")
    told = [*merger.text(reply.out)]
    for event in reply.events:
        told += merger.event(event)
    told += merger.finish()
    plain = [piece if isinstance(piece, bytes) else piece.data["text/plain"] for piece in told]
    assert plain == [b"a\n", "1", b"b", "2", b"c\n"]


def test_a_widget_whose_model_is_in_a_worker_is_its_text(server):
    view = "'application/vnd.jupyter.widget-view+json': {'model_id': 'x'}"
    reply = server.run(f"display({{{view}, 'text/plain': 'IntSlider(value=0)'}}, raw=True)")
    assert [event.data for event in reply.events] == [{"text/plain": "IntSlider(value=0)"}]


def test_a_display_can_be_updated_and_cleared(server):
    cell = (
        "from IPython.display import HTML, clear_output\n"
        "handle = display(HTML('x'), display_id='d')\n"
        "handle.update(HTML('y'))\n"
        "clear_output(wait=True)"
    )
    first, second, third = server.run(cell).events
    assert (first.data["text/html"], first.display_id, first.update) == ("x", "d", False)
    assert (second.data["text/html"], second.display_id, second.update) == ("y", "d", True)
    assert third == Cleared(rank=1, wait=True)


def test_bytes_in_a_display_travel_in_base64(server):
    cell = "class Picture:\n    def _repr_png_(self): return b'\\x89PNG'\ndisplay(Picture())"
    (event,) = server.run(cell).events
    assert isinstance(event, Display)
    assert event.data["image/png"] == "iVBORw=="


def test_text_in_a_display_is_such_that_it_can_be_sent(server):
    (event,) = server.run("display({'text/plain': 'half \\ud83d'}, raw=True)").events
    assert isinstance(event, Display)
    assert event.data["text/plain"] == "half \\ud83d"


def test_help_is_shown_and_does_not_wait_for_a_key(server):
    assert "Return the number of items" in server.run("len?").events[0].data["text/plain"]


def test_a_figure_that_is_left_open_is_displayed_as_a_picture(server):
    pytest.importorskip("matplotlib")
    cell = "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.subplots(figsize=(1, 1));"
    (event,) = server.run(cell).events
    assert event.data["image/png"].startswith("iVBOR")


def test_a_warning_names_the_cell_not_the_file(server):
    reply = server.run("import warnings\nwarnings.warn('careful')")
    assert reply.err.decode().startswith("Cell In[3]:3: UserWarning: careful\n  warnings.warn('careful')\n")


@pytest.mark.parametrize(
    "waiting",
    [
        "tell(); time.sleep(60)",
        "asyncio.get_running_loop().call_soon(tell); await asyncio.sleep(60)",
        "!echo > {begun}; sleep 60",
        "output = !echo > {begun}; sleep 60",
        "%sx echo > {begun}; sleep 60",
    ],
)
def test_an_interrupt_ends_what_the_body_waits_for_and_its_finally_blocks_run(
    fresh_server, tmp_path, waiting
):
    reply = interrupted(fresh_server, tmp_path, waiting, "print('cleaned up')")
    assert reply.end == BodyInterrupted()
    assert reply.out.endswith(b"cleaned up\n")
    assert b"went on" not in reply.out


def test_what_is_raised_on_the_way_out_of_an_interrupt_is_no_failure(fresh_server, tmp_path):
    reply = interrupted(fresh_server, tmp_path, "tell(); time.sleep(60)", "raise ValueError")
    assert reply.end == BodyInterrupted()


def interrupted(server, directory: Path, waiting: str, finally_: str):
    """Run a body that waits, interrupt it when it does, and return how it ended."""
    begun = directory / "begun"
    os.mkfifo(begun)
    cell = (
        f"import asyncio, time\nbegun = {str(begun)!r}\n"
        "def tell():\n    with open(begun, 'w'): pass\n"
        f"try:\n    {waiting}\n    print('went on')\n"
        f"finally:\n    {finally_}"
    )
    server.start(cell)
    begun.read_text()
    server.interrupt()
    return server.reply()


def test_the_shell_leaves_nothing_and_starts_nothing(tmp_path: Path):
    with body_server(HOME=str(tmp_path), IPYTHONDIR="", TMPDIR=str(tmp_path)) as server:
        server.run("%cd -q .\n1 + 1")
        assert list(tmp_path.iterdir()) == []
        assert server.born["threads"] == 1


def test_the_shell_needs_neither_torch_nor_numpy_nor_matplotlib(server):
    assert server.born["modules"].isdisjoint({"torch", "numpy", "matplotlib", "ipykernel", "ipywidgets"})
