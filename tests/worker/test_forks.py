"""Children that the body forks, and that come to its end: they end there, and the ranks go on."""

from __future__ import annotations

import pytest
from kernels import Kernel

SETUP = """
import multiprocessing as mp, os, sys, threading, numpy as np
import nbshm
codes = np.zeros(2)
def end_of(pid): return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""

# The child comes to its end when the rank has come to its own.
LATE = """
reader, writer = os.pipe()
pid = os.fork()
def last():
    threading.main_thread().join()
    os.close(writer)
    os.waitpid(pid, 0)
if pid:
    threading.Thread(target=last).start()
else:
    os.close(writer)
    os.read(reader, 1)
who = "rank" if pid else "child"
"""
EARLY = "pid = os.fork()\nwho = 'rank' if pid else 'child'\nif pid: codes[rank] = end_of(pid)\n"


@pytest.fixture(scope="module")
def notebook(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run(SETUP).check()
    return shared_notebook


@pytest.mark.parametrize("method", ["forkserver", "fork"])
@pytest.mark.parametrize("order", [EARLY, LATE])
def test_what_a_rank_gives_is_its_own(notebook: Kernel, order: str, method: str) -> None:
    reply = notebook.run(f"%%parallel nprocs=2 start_method={method} out=found\n{order}found = who\nwho")
    assert reply.check().result == {"text/plain": "['rank', 'rank']"}
    assert notebook.value("found") == ["rank", "rank"]


@pytest.mark.parametrize("method", ["forkserver", "fork"])
@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        ("pass", 0, None),
        ("sys.exit()", 0, None),
        ("sys.exit(3)", 3, None),
        ("sys.exit(-1)", 255, None),
        ("sys.exit('no room here')", 1, "no room here"),
        ("raise ValueError('a bad child')", 1, "ValueError: a bad child"),
    ],
)
def test_a_child_ends_as_a_script_does(
    notebook: Kernel, end: str, code: int, told: str | None, method: str
) -> None:
    notebook.run("codes[:] = -7")
    reply = notebook.run(
        f"%%parallel nprocs=2 start_method={method}\n"
        f"pid = os.fork()\nif not pid:\n    {end}\nelse:\n    codes[rank] = end_of(pid)\n"
        "'rank' if pid else 'child'"
    ).check()
    assert reply.result == {"text/plain": "['rank', 'rank']"}
    assert notebook.value("codes.tolist()") == [code, code]
    if told is None:
        assert reply.stderr == ""
    else:
        assert told in reply.text
    assert "nbshm/worker" not in reply.text


def test_a_child_s_traceback_says_whose_it_is_and_where(notebook: Kernel) -> None:
    reply = notebook.run("%%parallel nprocs=1\nif not os.fork():\n    1 / 0\nos.wait();").check()
    lines = reply.text.splitlines()
    assert lines[0] == "A process that the body has forked ended by this:"
    assert "line 3" in reply.text
    assert lines[-1] == "ZeroDivisionError: division by zero"


def test_what_a_child_prints_and_its_threads_is_waited_for(notebook: Kernel) -> None:
    reply = notebook.run(
        "%%parallel nprocs=1\npid = os.fork()\n"
        "if not pid: threading.Thread(target=lambda: print('from a thread')).start()\n"
        "else: print('ended', end_of(pid))"
    ).check()
    assert reply.text.splitlines() == ["from a thread", "ended 0"]


def test_a_child_is_not_missed_at_the_barrier(notebook: Kernel) -> None:
    notebook.run(
        "%%parallel nprocs=2\n"
        "pid = os.fork()\nif pid == 0: sys.exit(0)\n"
        "assert end_of(pid) == 0\nfor _ in range(3): nbshm.barrier()"
    ).check()


def test_a_rank_s_failure_is_one_story(notebook: Kernel) -> None:
    reply = notebook.run("%%parallel nprocs=2\npid = os.fork()\nif pid: end_of(pid); 1 / 0")
    assert reply.error is not None
    assert reply.error[0] == "RankRaised"
    assert "abruptly" not in reply.text


def test_a_process_of_multiprocessing_ends_as_ever(notebook: Kernel) -> None:
    reply = notebook.run(
        "%%parallel nprocs=2\n"
        "child = mp.get_context('fork').Process(target=lambda: 1 / 0); child.start(); child.join()\n"
        "child.exitcode"
    ).check()
    assert reply.result == {"text/plain": "[1, 1]"}
    assert reply.text.count("Process ForkProcess-") == 2
