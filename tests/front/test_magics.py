"""The magics in a real kernel: glue between IPython and a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernels import Kernel, kernel

# The run itself is replaced: these tests are about what comes before and after it.
SETUP = """
import sys, types
import nbshm.runs
from nbshm.options import OptionError
from nbshm.results import Results

runs, answer = [], Results([1, 2])

def run(body, session, options):
    runs.append((body, options))
    if isinstance(answer, Exception):
        raise answer
    return answer

nbshm.runs.runner = sys.modules["nbshm.runs.runner"] = types.ModuleType("nbshm.runs.runner")
nbshm.runs.runner.run = run

from nbshm.front.magics import MagicsInstallation
from contextlib import ExitStack
from nbshm.notebook.cell_numbers import cell_numbers

class Session:
    shell = get_ipython()
    runs = ()
    class launcher:
        stand_by = staticmethod(print)
    class notebook:
        cells = cell_numbers(get_ipython(), ExitStack())

before = {kind: dict(table) for kind, table in get_ipython().magics_manager.magics.items()}
installation = MagicsInstallation(Session())
n = 3
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel(tmp_path_factory.mktemp("magics"), load=False) as running:
        root = Path(__file__).parents[2]
        running.run(f"import sys; sys.path.insert(0, {str(root)!r})").check()
        running.run(SETUP).check()
        yield running


def refused(session: Kernel, source: str) -> str:
    reply = session.run(f"runs.clear()\n{source}") if not source.startswith("%%") else session.run(source)
    assert reply.error is None
    assert reply.stdout == ""
    (line,) = reply.stderr.splitlines()
    assert line.startswith("UsageError: ")
    return line


def test_a_cell_is_run_with_its_options_and_its_result_is_shown(session: Kernel) -> None:
    session.run("runs.clear()")
    reply = session.run("%%parallel nprocs={n} out=a, b\na = b = rank").check()
    assert reply.result == {"text/plain": "[1, 2]"}
    assert session.value("[(b.source, o.nprocs, o.out) for b, o in runs]") == [
        ("a = b = rank\n", 3, ("a", "b"))
    ]
    assert session.value("_") == [1, 2]


def test_no_result_leaves_the_last_one_alone(session: Kernel) -> None:
    session.run("41").check()
    reply = session.run("answer = None\nget_ipython().run_cell_magic('parallel', '', 'x = 1')").check()
    assert reply.result is None
    assert session.value("_") == 41
    session.run("answer = Results([1, 2])").check()


def test_the_body_has_the_place_that_its_tracebacks_are_to_show(session: Kernel) -> None:
    session.run("runs.clear()")
    session.run("%%time\n%%parallel nprocs=2\nprint(rank)").check()
    assert session.value("runs[0][0].origin.line") == 3
    assert session.value("runs[0][0].cell") == "%%time\n%%parallel nprocs=2\nprint(rank)"
    # IPython itself knows the cell under this name and this number.
    shown = session.value("get_ipython().compile.format_code_name(runs[0][0].origin.filename)")
    assert shown == ("Cell", f"In[{session.value('runs[0][0].origin.cell')}]")


def test_a_body_that_no_cell_holds_is_a_cell_of_its_own(session: Kernel) -> None:
    session.run("runs.clear()")
    session.run("get_ipython().run_cell_magic('parallel', 'nprocs=2', 'rank ** 2')").check()
    assert session.value("(runs[0][0].cell, runs[0][0].origin.line)") == ("%%parallel nprocs=2\nrank ** 2", 2)
    assert session.value(
        "runs[0][0].origin.filename == f'<%%parallel called in In [{runs[0][0].origin.cell}]>'"
    )


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("%%parallel nprocs=0\nrank", "a whole number from 1 to 1024"),
        ("%%parallel nprocs=n\nrank", "for the variable write nprocs={n}"),
        ("%%parallel nprocs={unknown}\nrank", "no value for {unknown}"),
        ("%%parallel start_method=frok\nrank", "did you mean fork?"),
        ("%%parallel nproc=2\nrank", "did you mean nprocs?"),
        ("%%parallel nprocs=2 nprocs=2\nrank", "given twice"),
        ("%%parallel nprocs=2\n", "the cell body is empty"),
        ("%%parallel nprocs=2\n   \n\n", "the cell is empty"),
        ("# a comment\n%%parallel nprocs=2\nrank", "must be the first line of its cell"),
        ("%parallel out=a", "can't be a default of the session"),
        ("%parallel f(rank)", "begin a cell with %%parallel"),
        ("%parallel f(rank, size=2)", "begin a cell with %%parallel"),
        ("%parallel nprocs=0", "a whole number from 1 to 1024"),
        ("%shm_strategy carrier_pigeon", "file_system"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_and_nothing_runs(session: Kernel, source: str, part: str) -> None:
    session.run("runs.clear()").check()
    assert part in refused(session, source)
    assert session.value("len(runs)") == 0


def test_an_option_that_the_run_refuses_is_told_in_one_line(session: Kernel) -> None:
    session.run("answer = OptionError('start method fork is refused: CUDA is initialised.')").check()
    assert refused(session, "%%parallel\nrank") == (
        "UsageError: start method fork is refused: CUDA is initialised."
    )
    session.run("answer = Results([1, 2])").check()


def test_a_kernel_without_descriptors_is_told_in_a_line_which_needs_none(session: Kernel) -> None:
    session.run("answer = OSError(24, 'Too many open files')").check()
    told = refused(session, "%%parallel\nrank")
    assert told.startswith("UsageError: this kernel has no file descriptors left for a run. Close files")
    session.run("answer = OSError(2, 'No such file')").check()
    assert session.run("%%parallel\nrank").error[0] == "FileNotFoundError"
    session.run("answer = Results([1, 2])").check()


def test_defaults_of_the_session_are_shown_set_and_used(session: Kernel) -> None:
    assert "nprocs=" in session.run("%parallel").check().stdout
    shown = session.run("%parallel nprocs=5 timeout=60").check().stdout.splitlines()
    assert [shown[0], *shown[3:]] == [
        "nprocs=5",
        "timeout=60",
        "grace=2",
        "standby=auto (as many as the last run had ranks)",
    ]
    session.run("runs.clear()")
    session.run("%%parallel\nrank").check()
    assert session.value("(runs[0][1].nprocs, runs[0][1].timeout)") == (5, 60.0)
    session.run("%parallel timeout=none").check()


def test_there_are_as_many_ranks_as_cpus_are_allowed_when_the_cell_starts(session: Kernel) -> None:
    session.run("%parallel nprocs=5").check()
    session.run("runs.clear(); installation, before_it = MagicsInstallation(Session()), installation").check()
    session.run(
        "import os; allowed = os.sched_getaffinity(0)\nos.sched_setaffinity(0, {min(allowed)})"
    ).check()
    assert session.run("%parallel").check().stdout.startswith("nprocs=1\n")
    session.run("%%parallel\nrank").check()
    session.run("os.sched_setaffinity(0, allowed); installation.close(); installation = before_it").check()
    assert session.value("runs[0][1].nprocs") == 1


def test_who_stands_by_is_for_the_session(session: Kernel) -> None:
    assert "standby is a default of the session" in refused(session, "%%parallel standby=2\nrank")
    told, *_, shown = session.run("%parallel standby=0").check().stdout.splitlines()
    assert (told, shown) == ("0", "standby=0")
    assert "standby=auto" in session.run("%parallel standby=auto").check().stdout


def test_a_refused_default_changes_nothing(session: Kernel) -> None:
    before = session.run("%parallel").check().stdout
    refused(session, "%parallel grace=3 nprocs=0")
    assert session.run("%parallel").check().stdout == before


def test_the_strategy_is_shown_and_set(session: Kernel) -> None:
    shown = session.run("%shm_strategy").check().stdout.splitlines()
    assert [line.split()[0] for line in shown[:2]] == ["file_descriptor", "file_system"]
    assert [line.endswith("(in force)") for line in shown[:2]] == [True, False]
    assert re.match(r"room in /dev/shm, which torch needs for both: \S+ \w+", shown[2])
    assert re.match(r"open descriptors: \d+ of \d+", shown[3])
    assert session.run("%shm_strategy file_system").check().stdout == "file_system\n"
    assert session.value("__import__('torch').multiprocessing.get_sharing_strategy()") == "file_system"
    session.run("%shm_strategy file_descriptor").check()


def test_the_help_is_complete(session: Kernel) -> None:
    text = session.value("get_ipython().find_cell_magic('parallel').__doc__")
    from nbshm.option_table import OPTIONS

    assert [option.name for option in OPTIONS if option.example not in text] == []
    assert "Examples" in text
    message = session.client.execute("%%parallel?", allow_stdin=False)
    session.finish(message)
    reply = session.client.get_shell_msg(timeout=30)
    while reply["parent_header"]["msg_id"] != message:
        reply = session.client.get_shell_msg(timeout=30)
    assert "Run the cell in several processes" in reply["content"]["payload"][0]["data"]["text/plain"]


@pytest.mark.parametrize(
    ("line", "matches", "replaced"),
    [
        ("%%parallel np", ["nprocs="], "np"),
        ("%%parallel nprocs=2 start_method=", ["forkserver", "spawn", "fork"], ""),
        ("%%parallel nprocs=2 start_method=fo", ["forkserver", "fork"], "fo"),
        ("%parallel st", ["start_method=", "standby="], "st"),
    ],
)
def test_tab_completes_options_and_values(
    session: Kernel, line: str, matches: list[str], replaced: str
) -> None:
    assert completed(session, line) == (matches, replaced)


def test_tab_still_completes_other_code(session: Kernel) -> None:
    matches, _ = completed(session, "runs.appe")
    assert any(match.endswith("append") for match in matches)


def completed(session: Kernel, line: str) -> tuple[list[str], str]:
    message = session.client.complete(f"{line}\nrank" if line.startswith("%%") else line, len(line))
    while True:
        reply = session.client.get_shell_msg(timeout=30)
        if reply["parent_header"]["msg_id"] == message:
            content = reply["content"]
            return content["matches"], line[content["cursor_start"] : content["cursor_end"]]


def test_taken_out_the_magics_leave_nothing(session: Kernel) -> None:
    session.run("installation.close(); installation.close()").check()
    assert session.value("'parallel' in get_ipython().magics_manager.magics['cell']") is False
    same = "all(before[k].keys() == t.keys() for k, t in get_ipython().magics_manager.magics.items())"
    assert session.value(same) is True
    assert completed(session, "%%parallel np")[0] == []
    session.run("installation = MagicsInstallation(Session())").check()
    assert completed(session, "%%parallel np")[0] == ["nprocs="]


@pytest.mark.parametrize("above", ["", "%%time\n"])
def test_the_debugger_does_not_open_for_a_failed_rank_but_does_for_other_failures(
    shared_notebook: Kernel, above: str
) -> None:
    """The debugger has opened where it has asked for a command."""
    notebook = shared_notebook
    nothing = "There is nothing to step into: the frames of the failed rank ended with its process."
    parallel, serial = (f"{above}{line}1 / 0" for line in ("%%parallel nprocs=1\n", ""))
    assert notebook.run(parallel).error is not None
    assert nothing in notebook.run("%debug").stderr
    notebook.run(serial)
    assert "raw_input" in notebook.run("%debug").text
    notebook.run("%pdb on").check()
    reply = notebook.run(parallel)
    assert nothing in reply.stderr
    assert "raw_input" not in reply.text
    assert "raw_input" in notebook.run(serial).text
    notebook.run("%pdb off").check()
