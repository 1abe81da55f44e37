"""What people try first, in real kernels: nbshm beside what they know of notebooks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
import pexpect
import pytest
from kernels import Kernel, kernel
from nbclient import NotebookClient

PYTHON = {"language_info": {"name": "python"}}
WIDGET = "application/vnd.jupyter.widget-view+json"


def test_other_cell_magics_stand_above_and_below(shared_notebook: Kernel) -> None:
    run = shared_notebook.run
    run("%%capture cap\n%%parallel nprocs=2\nprint('hello', rank)\nrank").check()
    captured = shared_notebook.value("sorted(cap.stdout.splitlines())")
    assert captured == ["[rank 0] hello 0", "[rank 1] hello 1"]
    timed = run("%%time\n%%parallel nprocs=2\nrank").check()
    assert timed.result == {"text/plain": "[0, 1]"}
    assert "Wall time" in timed.stdout
    below = run("%%parallel nprocs=2\n%%time\nx = rank").check()
    assert "[ranks 0-1] CPU times" in below.text or "Wall time" in below.text
    often = run("%%timeit -n1 -r1\n%%parallel nprocs=2\nprint('once')").check()
    assert "1 run, 1 loop each" in often.stdout
    assert "[ranks 0-1] once" in often.text


def test_a_cell_of_a_running_event_loop_can_run_in_parallel(shared_notebook: Kernel) -> None:
    shared_notebook.run("import asyncio\nticks = asyncio.create_task(asyncio.sleep(0, 'ticked'))").check()
    reply = shared_notebook.run("%%parallel nprocs=2\nimport asyncio\nawait asyncio.sleep(0)\nrank").check()
    assert reply.result == {"text/plain": "[0, 1]"}
    assert shared_notebook.run("await ticks").check().result == {"text/plain": "'ticked'"}


CELLS = [
    "%load_ext nbshm\nimport numpy as np\nout = np.zeros(4)\ndef square(x):\n    return x * x",
    "%%parallel nprocs=2\nprint('quick', rank)\nout[rank] = square(rank + 1)\nrank",
    "%%parallel nprocs=2\nimport time\ntime.sleep(0.5)  # long enough for a live view",
    "%%parallel nprocs=2 out=part\nimport time\ntime.sleep(0.4)\nprint('slow')\npart = square(rank)",
    "out, part",
]


def executed(directory: Path) -> str:
    cells = [nbformat.v4.new_code_cell(source, id=f"cell-{n}") for n, source in enumerate(CELLS)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    options = {"resources": {"metadata": {"path": directory}}, "record_timing": False}
    NotebookClient(notebook, timeout=60, **options).execute()
    return nbformat.writes(notebook)


def test_restart_and_run_all_gives_the_same_notebook(tmp_path: Path) -> None:
    first = executed(tmp_path)
    assert executed(tmp_path) == first
    assert "widget" not in first
    (tmp_path / "run.ipynb").write_text(first)
    command = f"{sys.executable} -m pytest --nbval -p no:cacheprovider --color=no run.ipynb"
    text, status = pexpect.run(command, cwd=tmp_path, withexitstatus=True, timeout=110)
    assert status == 0, text.decode()
    assert f"{len(CELLS)} passed" in text.decode()


def test_a_working_directory_that_is_gone_is_told_in_a_line_before_anything_starts(tmp_path: Path) -> None:
    with kernel(tmp_path) as notebook:
        notebook.run("import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir(os.getcwd())").check()
        told = "UsageError: the notebook's working directory is gone. Go to another one: %cd DIRECTORY.\n"
        for method in ("forkserver", "spawn", "fork"):
            assert notebook.run(f"%%parallel nprocs=2 start_method={method}\nrank").stderr == told
        notebook.run(f"%cd -q {tmp_path}").check()
        notebook.run("%%parallel nprocs=2 out=where\nimport os\nwhere = os.getcwd()").check()
        assert notebook.value("where") == [str(tmp_path)] * 2


def test_papermill_fills_in_parameters(tmp_path: Path) -> None:
    papermill = pytest.importorskip("papermill")
    cells = [
        nbformat.v4.new_code_cell("%load_ext nbshm"),
        nbformat.v4.new_code_cell("n = 1", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell("%%parallel nprocs={n}\nprint('n is', n)\nn * 10 + rank"),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=PYTHON), tmp_path / "in.ipynb")
    options = {"cwd": tmp_path, "progress_bar": False, "kernel_name": "python3"}
    papermill.execute_notebook(tmp_path / "in.ipynb", tmp_path / "out.ipynb", {"n": 2}, **options)
    story, result = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells[-1].outputs
    assert story.data["text/plain"] == "[ranks 0-1] n is 2"
    assert result.data["text/plain"] == "[20, 21]"


def test_two_kernels_work_in_one_directory_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "both")
    with kernel(tmp_path) as one, kernel(tmp_path) as other:
        for number, running in enumerate((one, other)):
            running.run(f"def who():\n    return {number}").check()
        # Each waits in its workers for the other: a pipe opens when both ends are opened.
        cell = "%%parallel nprocs=2\nif rank == 0:\n    open('both', '{}').close()\nwho()"
        messages = [running.send(cell.format(mode)) for running, mode in ((one, "r"), (other, "w"))]
        for number, running in enumerate((one, other)):
            reply = running.finish(messages[number]).check()
            assert reply.result == {"text/plain": f"[{number}, {number}]"}


def edit(directory: Path, source: str, nanoseconds: int) -> None:
    """Write a module; a time of its own, because two edits may fall into one tick of the file system."""
    file = directory / "helper.py"
    file.write_text(source)
    os.utime(file, ns=(nanoseconds, nanoseconds))


def test_workers_run_a_local_module_as_it_is_on_disk_and_say_so(tmp_path: Path) -> None:
    second = 10**9
    edit(tmp_path, "def f():\n    return 1\nclass Thing:\n    value = 1\n", 1000 * second)
    with kernel(tmp_path) as notebook:
        notebook.run("import helper\nfrom helper import Thing\nthing = Thing()").check()
        reply = notebook.run("%%parallel nprocs=2\nhelper.f()").check()
        assert reply.result == {"text/plain": "[1, 1]"}
        assert "helper.py" not in reply.text

        edit(tmp_path, "def f():\n    return 22\nclass Thing:\n    value = 22\n", 2000 * second)
        for source in ("helper.f()", "thing.value", "Thing.value"):
            reply = notebook.run(f"%%parallel nprocs=2\n{source}").check()
            assert reply.result == {"text/plain": "[22, 22]"}
            assert reply.text.count("helper.py has changed since the notebook imported it") == 1
        assert "helper.py" not in notebook.run("%%parallel nprocs=2\nrank").check().text

        notebook.run("import importlib; importlib.reload(helper)").check()
        assert "helper.py" not in notebook.run("%%parallel nprocs=2\nhelper.f()").check().text
        notebook.run("%load_ext autoreload\n%autoreload 2").check()
        edit(tmp_path, "def f():\n    return 333\n", 3000 * second)
        reply = notebook.run("%%parallel nprocs=2\nhelper.f()").check()
        assert reply.result == {"text/plain": "[333, 333]"}
        assert "helper.py" not in reply.text


def as_from(notebook: Kernel, source: str, **metadata: object) -> str:
    """Run a cell as a front end with a person before it does; a notebook names the cell."""
    session = notebook.client.session
    content = {"code": source, "silent": False, "store_history": True, "allow_stdin": True}
    message = session.msg("execute_request", content, metadata=metadata)
    notebook.client.shell_channel.send(message)
    return message["header"]["msg_id"]


def test_each_front_end_is_shown_what_it_can_show(shared_notebook: Kernel) -> None:
    source = "%%parallel nprocs=2\nimport time\nprint('said', flush=True)\ntime.sleep(0.5)"
    page = shared_notebook.finish(as_from(shared_notebook, source, cellId="a"))
    live, story = page.check().displays
    assert WIDGET in live
    assert story["text/plain"] == "[ranks 0-1] said"
    colab = shared_notebook.finish(as_from(shared_notebook, source, colab={"cell_id": "a"}))
    assert colab.check().displays[-1] == story
    # A console passes over what replaces another output: it is given text, as it comes.
    console = shared_notebook.finish(as_from(shared_notebook, source)).check()
    assert (console.displays, console.stdout) == ([], "[ranks 0-1] said\n")
    headless = shared_notebook.run(source).check()
    assert headless.displays == [story]


def terminal(directory: Path, *arguments: str) -> pexpect.spawn:
    environment = {**os.environ, "IPYTHONDIR": str(directory), "TERM": "dumb"}
    command = ["-m", "IPython", "--colors=NoColor", "--no-banner", "--simple-prompt", *arguments]
    return pexpect.spawn(
        sys.executable, command, cwd=directory, env=environment, encoding="utf-8", timeout=60
    )


def test_a_terminal_ipython_runs_parallel_cells(tmp_path: Path) -> None:
    session = terminal(tmp_path)
    session.expect(r"In \[1\]: ")
    session.sendline("%load_ext nbshm")
    session.expect(r"In \[2\]: ")
    session.sendline("def triple(x): return 3 * x\n")
    session.expect(r"In \[3\]: ")
    for line in ("%%parallel nprocs=2", "print('hello', rank)", "triple(rank)", "", ""):
        session.sendline(line)
    session.expect(r"\[rank [01]\] hello [01]\r\n\[rank [01]\] hello [01]")
    session.expect_exact("[0, 3]")
    for line in ("%%parallel nprocs=2", "1 / (rank - 1)", "", ""):
        session.sendline(line)
    session.expect("rank 1 failed")
    session.expect(r"ZeroDivisionError\S*: division by zero")
    session.expect(r"In \[5\]: ")
    session.sendline("exit")
    session.expect(pexpect.EOF)
    session.close()
    assert session.exitstatus == 0


def test_a_program_for_ipython_runs_parallel_cells(tmp_path: Path) -> None:
    program = (
        "get_ipython().run_line_magic('load_ext', 'nbshm')\n"
        "def triple(x): return 3 * x\n"
        "print('results', get_ipython().run_cell_magic('parallel', 'nprocs=2', 'triple(rank)'))"
    )
    session = terminal(tmp_path, "-c", program)
    session.expect_exact("results [0, 3]")
    session.expect(pexpect.EOF)
    session.close()
    assert session.exitstatus == 0


def test_runs_of_several_threads_come_one_after_the_other_and_lose_nothing(tmp_path: Path) -> None:
    with kernel(tmp_path) as notebook:
        source = (
            "import threading, numpy as np\n"
            "array = np.zeros(6); held = [array]\n"
            "run = get_ipython().run_cell_magic\n"
            "def part(i): run('parallel', 'nprocs=2', f'array[{i} * 2 + rank] = 1')\n"
            "threads = [threading.Thread(target=part, args=(i,)) for i in range(3)]\n"
            "for thread in threads: thread.start()\n"
            "for thread in threads: thread.join(60)\n"
        )
        notebook.run(source).check()
        assert notebook.value("array.tolist()") == [1.0] * 6


@pytest.mark.parametrize("start_method", ["forkserver", "spawn", "fork"])
def test_a_lock_that_was_asked_for_before_the_cell_is_the_runs(
    shared_notebook: Kernel, start_method: str
) -> None:
    shared_notebook.run("import numpy as np, nbshm\nlock, total = nbshm.lock(), np.zeros(1)").check()
    body = "for _ in range(300):\n    with lock:\n        total += 1"
    shared_notebook.run(f"%%parallel nprocs=2 start_method={start_method}\n{body}").check()
    assert shared_notebook.value("total.tolist()") == [600]


def test_a_lock_of_ranks_is_refused_by_plain_multiprocessing(shared_notebook: Kernel) -> None:
    shared_notebook.run("import nbshm, pickle").check()
    reply = shared_notebook.run("pickle.loads(pickle.dumps(nbshm.lock()))")
    assert reply.error is not None
    assert "Use a lock of multiprocessing" in reply.error[1]


@pytest.mark.parametrize("start_method", ["forkserver", "spawn", "fork"])
def test_ranks_go_through_the_notebooks_sets_in_one_order(shared_notebook: Kernel, start_method: str) -> None:
    shared_notebook.run("names = {f'name {number}' for number in range(30)}").check()
    shared_notebook.run(
        f"%%parallel nprocs=3 start_method={start_method} out=seeds,orders,shares\nimport os\n"
        "seeds, orders = os.environ.get('PYTHONHASHSEED'), list(names)\n"
        "shares = list(nbshm.claim(list(names)))"
    ).check()
    assert shared_notebook.value("orders[0] == orders[1] == orders[2]")
    assert shared_notebook.value("sorted(sum(shares, [])) == sorted(names)")
    assert shared_notebook.value("seeds") == [None] * 3
