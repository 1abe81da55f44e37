"""An interrupt before the ranks run: a line tells it, and nothing is broken or held by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kernels import Kernel, Reply, kernel

IMPORTS = """
import os, signal, sys, nbshm

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

class InterruptingFinder:
    "Interrupts the import of a module, which others find."
    def __init__(self, name):
        assert name not in sys.modules
        self.name = name
        sys.meta_path.insert(0, self)
    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            sys.meta_path.remove(self)
            interrupt()
"""
SETUP = """
import numpy as np
import nbshm.memory.placing as placing, nbshm.processes.workers as workers

class Interrupting:
    def __reduce__(self):
        interrupt()
        return Interrupting, ()

class Unsendable:
    def __reduce__(self):
        raise TypeError("not this")

def at_next_call_of(function):
    "Return what interrupts when it is called the first time, and then does as the function does."
    calls.clear()
    def call(*args):
        calls.append(args)
        if len(calls) == 1: interrupt()
        return function(*args)
    return call

interrupting, unsendable, calls = Interrupting(), Unsendable(), []
"""
LINE = "KeyboardInterrupt: the run was interrupted."


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Kernel]:
    with kernel(tmp_path) as running:
        running.run(IMPORTS).check()
        yield running


@pytest.fixture(scope="module")
def prepared(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run(IMPORTS + SETUP).check()
    return shared_notebook


@pytest.fixture
def notebook(prepared: Kernel) -> Kernel:
    prepared.run("arrays = [np.zeros(4) for _ in range(3)]").check()
    return prepared


def told(reply: Reply) -> str:
    assert reply.error is not None, reply.text
    return reply.error[2]


@pytest.mark.parametrize("module", ["torch", "torch.multiprocessing", "nbshm.runs.runner", "nbshm.packing"])
def test_imports_for_the_first_cell_are_not_cut_in_two(fresh: Kernel, module: str) -> None:
    fresh.run(f"InterruptingFinder({module!r});").check()
    assert told(fresh.run("%%parallel nprocs=2\nrank")) == LINE
    assert fresh.run("%%parallel nprocs=2\nrank").check().result == {"text/plain": "[0, 1]"}


def test_the_import_of_numpy_is_not_cut_in_two(fresh: Kernel) -> None:
    fresh.run("InterruptingFinder('numpy');").check()
    assert fresh.run("nbshm.zeros(3)").error is not None
    fresh.run("assert 'numpy' in sys.modules; nbshm.zeros(3)").check()


@pytest.mark.parametrize("call", ["%%parallel nprocs=2\n", "nbshm.spawn(lambda rank, *_: None, "])
def test_one_while_values_are_packed_leaves_none_of_them_held(notebook: Kernel, call: str) -> None:
    reply = notebook.run(f"{call}(arrays, interrupting)" + ")" * call.startswith("nbshm"))
    assert told(reply) == LINE
    notebook.run("nbshm.share(arrays)").check()


def test_one_while_workers_start_is_a_line(notebook: Kernel) -> None:
    notebook.run(
        "before, workers.Workers.be_swept = (f := workers.Workers.be_swept), at_next_call_of(f)"
    ).check()
    assert told(notebook.run("%%parallel nprocs=2\narrays[0][rank] = 1")) == LINE
    notebook.run("workers.Workers.be_swept = before\nnbshm.share(arrays)").check()
    notebook.run("%%parallel nprocs=2\narrays[0][rank] = 1").check()
    assert notebook.value("arrays[0].tolist()") == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ("%%parallel nprocs=2\narrays", LINE),
        (
            "nbshm.share(arrays)",
            "KeyboardInterrupt: nbshm.share was interrupted. What it has not moved is where it was.",
        ),
    ],
)
def test_one_while_memory_is_placed_is_heeded_between_two_pieces(
    notebook: Kernel, call: str, line: str
) -> None:
    notebook.run(
        "before, placing.wait_until_released = (f := placing.wait_until_released), at_next_call_of(f)"
    ).check()
    assert told(notebook.run(call)) == line
    assert notebook.value("len(calls)") == 1
    notebook.run("placing.wait_until_released = before\nnbshm.share(arrays)").check()
    notebook.run("%%parallel nprocs=2\nfor array in arrays: array[rank] = 1").check()
    assert notebook.value("[array.tolist() for array in arrays]") == [[1, 1, 0, 0]] * 3


def test_what_a_refused_cell_needs_is_not_held_by_its_error(notebook: Kernel) -> None:
    assert "cannot send 'unsendable'" in told(notebook.run("%%parallel nprocs=2\narrays, unsendable"))
    notebook.run("nbshm.share(arrays)").check()
