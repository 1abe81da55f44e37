"""`nbshm.spawn` and `nbshm.start_processes`, which mean what torch's functions of these names mean."""

from __future__ import annotations

import inspect
import re

import pytest
from kernels import Kernel

import nbshm

METHODS = ("forkserver", "spawn", "fork")

SETUP = """
import threading, time
import multiprocessing as mp
import numpy as np, torch, nbshm
from torch.multiprocessing import ProcessRaisedException, ProcessExitedException

args = "a global of the notebook"

def work(rank, shared, factor):
    shared[rank] = (rank + 1) * factor
    print("rank", rank, "reads", args)
    return rank * factor

def fail(rank, message):
    if rank == 1:
        raise ValueError(message)
    time.sleep(600)

def have_child(rank):
    child = mp.get_context("fork").Process(target=print, args=("here",))
    child.start()
    child.join()

def wait(rank, gone):
    while not gone[0]:
        time.sleep(0.005)
    return rank
"""


@pytest.fixture(scope="module")
def session(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run(SETUP).check()
    return shared_notebook


def test_the_signatures_are_torchs() -> None:
    torch_spawn = pytest.importorskip("torch.multiprocessing.spawn")
    for name in ("spawn", "start_processes"):
        ours, theirs = (inspect.signature(getattr(where, name)).parameters for where in (nbshm, torch_spawn))
        assert {key: value.default for key, value in ours.items()} == {
            key: theirs[key].default for key in list(theirs)[: len(ours)]
        }


def test_spawn_warns_of_other_start_methods_and_spawns(session: Kernel) -> None:
    reply = session.run(
        "shared = torch.zeros(2)\nnbshm.spawn(work, (shared, 3), 2, start_method='fork')"
    ).check()
    assert "spawn always uses start_method=spawn (got: fork)" in reply.stderr
    assert session.value("(shared.tolist(), list(nbshm.last.results))") == ([3.0, 6.0], [0, 3])
    assert reply.result is None


@pytest.mark.parametrize("method", METHODS)
def test_a_function_of_the_notebook_runs_in_each_rank(session: Kernel, method: str) -> None:
    session.run("shared = torch.zeros(3)").check()
    session.run(f"nbshm.start_processes(work, [shared, 2], 3, start_method={method!r})").check()
    assert session.value("(shared.tolist(), list(nbshm.last.results))") == ([2.0, 4.0, 6.0], [0, 2, 4])
    assert session.value("nbshm.last.output(2)") == "rank 2 reads a global of the notebook\n"
    assert session.value("[name for name in globals() if 'nbshm_' in name]") == []


@pytest.mark.parametrize("method", ["forkserver", "fork"])
def test_a_failure_is_torchs_and_points_at_the_function(session: Kernel, method: str) -> None:
    reply = session.run(
        f"try:\n    nbshm.start_processes(fail, ('no data',), 2, start_method={method!r})\n"
        "except ProcessRaisedException as error:\n    caught = error\n    raise"
    )
    assert reply.error[0] == "RankRaised"
    assert re.search(r"rank 1 failed at In \[\d+\] line 15; rank 0 was stopped", reply.text), reply.text
    assert "_nbshm" not in reply.text
    assert session.value("(caught.error_index, str(caught.__cause__))") == (1, "no data")


def test_a_context_is_joined_as_torchs_is(session: Kernel) -> None:
    session.run(
        "gone = np.zeros(1)\n"
        "context = nbshm.start_processes(wait, (gone,), 2, join=False, start_method='forkserver')"
    ).check()
    alive = "[process.is_alive() for process in context.processes]"
    assert session.value(f"(context.join(0), {alive}, len(set(context.pids())))") == (False, [True, True], 2)
    assert session.value("sorted(context.sentinels.values())") == [0, 1]
    assert "running for" in session.run("context").text


def test_a_context_raises_what_failed(session: Kernel) -> None:
    session.run("context = nbshm.start_processes(fail, ('no',), 2, False, start_method='forkserver')").check()
    reply = session.run("while not context.join(timeout=60, grace_period=0.5): pass")
    assert reply.error[0] == "RankRaised", reply.text
    assert session.value("[process.exitcode for process in context.processes]") == [1, 1]
    assert session.value("[process.is_alive() for process in context.processes]") == [False, False]


def test_a_daemon_may_have_no_children_and_says_so(session: Kernel) -> None:
    session.run("nbshm.start_processes(have_child, start_method='forkserver')").check()
    reply = session.run("nbshm.start_processes(have_child, daemon=True, start_method='forkserver')")
    assert "daemonic processes are not allowed to have children" in reply.text


def test_a_value_that_cannot_come_back_is_no_failure(session: Kernel) -> None:
    reply = session.run(
        "nbshm.start_processes(lambda rank: threading.Lock(), nprocs=2, start_method='forkserver')"
    ).check()
    assert "what it returned can't come back to the notebook: _thread.lock can't be pickled" in reply.text
    assert session.value("list(nbshm.last.results)") == [None, None]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            "work, (open('data.txt', 'w'), 1)",
            "cannot send 'args[0]' to the workers: _io.TextIOWrapper",
        ),
        ("5", "fn must be a function, not int"),
        ("work, (), 0", "nprocs is a whole number from 1"),
        ("work, start_method='frok'", "did you mean fork?"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(session: Kernel, call: str, words: str) -> None:
    assert words in session.run(f"nbshm.start_processes({call})").error[1]


def test_elsewhere_torchs_own_functions_are_named() -> None:
    with pytest.raises(RuntimeError, match="works in a notebook with %load_ext nbshm"):
        nbshm.start_processes(print)
