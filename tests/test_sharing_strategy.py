"""torch's sharing strategy of the notebook, wherever code of the notebook runs."""

from __future__ import annotations

import pytest

CHILDREN = """
import torch
import torch.multiprocessing as mp
answers = torch.zeros(3)

def strategy(_=None):
    return mp.get_sharing_strategy()

def answer(index, answers, place):
    answers[place] = ["file_descriptor", "file_system"].index(strategy()) + 1

def answer_nested(index, answers):
    answer(index, answers, 0)
    mp.spawn(answer, (answers, 1))
"""


@pytest.fixture(scope="module")
def notebook(shared_notebook):
    shared_notebook.run(CHILDREN).check()
    return shared_notebook


def test_what_torch_is_told_in_a_cell_holds_in_the_next_parallel_cells(notebook):
    for name in ("file_system", "file_descriptor"):
        notebook.run(f"mp.set_sharing_strategy({name!r})").check()
        for method in ("forkserver", "spawn", "fork"):
            cell = f"%%parallel nprocs=1 start_method={method}\nstrategy()"
            assert notebook.run(cell).check().result == {"text/plain": f"[{name!r}]"}


def test_children_of_plain_multiprocessing_have_the_strategy_and_their_children_too(notebook):
    notebook.run("%shm_strategy file_system").check()
    notebook.run("mp.spawn(answer_nested, (answers,))").check()
    pool = "with mp.get_context('forkserver').Pool(1) as pool:\n    print(pool.map(strategy, [1]))"
    assert notebook.run(pool).check().stdout == "['file_system']\n"
    assert notebook.value("answers.tolist()") == [2, 2, 0]
    notebook.run("%shm_strategy file_descriptor").check()


def test_the_strategy_is_not_changed_under_a_run(notebook):
    notebook.run("gate = mp.get_context('spawn').SimpleQueue()").check()
    notebook.run("%%parallel nprocs=1 background=job\ngate.get()").check()
    told = notebook.run("%shm_strategy file_system").stderr
    assert told.startswith("UsageError: the strategy can't be changed while this runs: job (In [")
    assert "Wait until it has ended, or stop it." in told
    notebook.run("%shm_strategy file_descriptor").check()
    notebook.run("gate.put(0); job.wait()").check()
    notebook.run("%shm_strategy file_system").check()
    notebook.run("%shm_strategy file_descriptor").check()
