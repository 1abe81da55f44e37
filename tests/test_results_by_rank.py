"""What a parallel cell gives back, in a real kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from kernels import Kernel, kernel

SETUP = """
import sys
import numpy as np, torch, nbshm
from dataclasses import dataclass

@dataclass
class Row:
    number: int

class Fussy:
    def __getstate__(self):
        return {"made": True}
    def __setstate__(self, state):
        if "RANK" not in __import__("os").environ:
            raise ValueError("not in this process")

class ApiError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code

def failing(code):
    try:
        raise ApiError(code, "no answer")
    except ApiError as error:
        return error

last_error = failing(404)

class Table:
    def __init__(self, number):
        self.number = number
    def __repr__(self):
        return f"<table {self.number}>"
    def _repr_html_(self):
        return f"<table><td>{self.number}</td></table>"

class Picture:
    def _repr_png_(self):
        return b"png"

tensor, array = torch.zeros(4), np.zeros(4)
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel(tmp_path_factory.mktemp("results")) as running:
        running.run(SETUP).check()
        yield running


def test_the_last_expression_is_a_list_by_rank_that_stays_in_out(notebook: Kernel) -> None:
    reply = notebook.run("%%parallel nprocs=2\nRow(rank)").check()
    assert reply.result == {"text/plain": "[Row(number=0), Row(number=1)]"}
    assert notebook.value("[type(row) is Row for row in _]") == [True, True]
    assert notebook.value("nbshm.last.results == Out[max(Out)]") is True


def test_exceptions_whose_init_takes_other_arguments_travel_both_ways(notebook: Kernel) -> None:
    body = "{rank: failing(rank), 'given': last_error, 'told': (last_error.code, str(last_error))}"
    notebook.run(f"%%parallel nprocs=2\n{body}").check()
    assert notebook.value("[found[rank].code for rank, found in enumerate(_)]") == [0, 1]
    assert notebook.value("[found['told'] for found in nbshm.last.results]") == [(404, "no answer")] * 2
    given = "type(found['given']) is ApiError and found['given'].args == ('no answer',)"
    assert notebook.value(f"[{given} for found in nbshm.last.results]") == [True, True]


def test_so_do_those_whose_class_the_body_defines(notebook: Kernel) -> None:
    notebook.run("""%%parallel nprocs=1
class OwnError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
OwnError(5, "mine")
""").check()
    assert notebook.value("(_[0].code, str(_[0]))") == (5, "mine")


def test_tables_and_figures_among_the_results_are_shown_as_the_notebook_shows_them(notebook: Kernel) -> None:
    shown = notebook.run("%%parallel nprocs=3\n[Table(rank), Picture(), '<td>'][rank]").check().result
    assert shown["text/plain"].startswith("[<table 0>, <__main__.Picture object")
    rows = re.findall(r'<div class="rank">(rank .)</div><div>(.*?)</div>', shown["text/html"])
    assert rows == [
        ("rank 0", "<table><td>0</td></table>"),
        ("rank 1", '<img src="data:image/png;base64,cG5n" alt="">'),
        ("rank 2", "<pre>&#x27;&lt;td&gt;&#x27;</pre>"),
    ]
    assert notebook.value("isinstance(_, list)") is True


@pytest.mark.parametrize("last", ["rank;", "None", "x = rank", "rank if rank > 9 else None"])
def test_no_value_leaves_the_last_result_alone(notebook: Kernel, last: str) -> None:
    notebook.run("'before'").check()
    assert notebook.run(f"%%parallel nprocs=2\n{last}").check().result is None
    assert notebook.value("_") == "before"


def test_the_notebooks_memory_comes_back_as_itself_and_other_memory_outlives_its_worker(
    notebook: Kernel,
) -> None:
    source = "tensor[rank] = array[rank] = rank + 1\ntensor, array[1:], torch.ones(9), np.full(300_000, rank)"
    notebook.run(f"%%parallel nprocs=2\n{source}").check()
    same = "[(t.data_ptr() == tensor.data_ptr(), np.shares_memory(a, array)) for t, a, _, _ in _]"
    assert notebook.value(same) == [(True, True), (True, True)]
    results = "[(int(t.sum()), int(a.sum())) for *rest, t, a in Out[max(Out)]]"
    assert notebook.value(results) == [(9, 0), (9, 300_000)]
    notebook.run("for *rest, t, a in Out[max(Out)]:\n    t += 1\n    a += 1").check()


def test_out_binds_lists_by_rank(notebook: Kernel) -> None:
    reply = notebook.run("%%parallel nprocs=2 out=a, b\na = rank\nif rank == 0:\n    b = 'x'").check()
    assert notebook.value("(a, b)") == ([0, 1], ["x", None])
    assert reply.text.count("out=b: rank 1 did not bind it; None stands for it.") == 1


def test_a_name_that_no_rank_binds_is_a_name_error_in_one_line(notebook: Kernel) -> None:
    notebook.run("a = 'old'").check()
    reply = notebook.run("%%parallel nprocs=2 out=a,never\na = rank\nif rank > 9:\n    never = 1")
    assert reply.error is not None
    assert reply.error[1] == "out=never: no rank has bound 'never'."
    assert reply.error[2] == "NameError: out=never: no rank has bound 'never'."
    assert notebook.value("(a, 'never' in globals())") == ("old", False)
    assert notebook.value("issubclass(type(sys.last_value), NameError)") is True
    refused = notebook.run("%%parallel nprocs=2 out=other\na = 1")
    assert "the cell never binds 'other'. Assign it in the cell, or leave it out." in refused.stderr
    notebook.run("found = []").check()
    refused = notebook.run("%%parallel nprocs=2 out=found\nfound.append(1)")
    assert "the cell never binds 'found'. Assign it in the cell, or end the cell in found." in refused.stderr


def test_a_failure_binds_nothing_and_is_the_last_run(notebook: Kernel) -> None:
    notebook.run("a = 'old'").check()
    source = "a = rank\nprint('said', rank, flush=True)\nnbshm.barrier()\nif rank == 1:\n    1 / 0"
    assert notebook.run(f"%%parallel nprocs=2 out=a\n{source}").error is not None
    assert notebook.value("a") == "old"
    assert notebook.value("nbshm.last.ending") == "failed"
    assert notebook.value("[failure.rank for failure in nbshm.last.failures]") == [1]
    assert notebook.value("[nbshm.last.output(rank) for rank in range(2)]") == ["said 0\n", "said 1\n"]
    assert notebook.value("all(seconds > 0 for seconds in nbshm.last.seconds)") is True


def test_a_value_that_can_not_be_pickled_fails_its_rank_by_name(notebook: Kernel) -> None:
    source = "import threading, types\nlocks = [1, {'a': types.SimpleNamespace(lock=threading.Lock())}]"
    reply = notebook.run(f"%%parallel nprocs=2 out=locks\n{source}")
    assert reply.error is not None
    why = "at [1]['a'].lock, _thread.lock can't be pickled (TypeError: cannot pickle '_thread.lock' object)."
    assert f"out=locks can't come back to the notebook: {why}" in reply.error[1]
    reply = notebook.run(f"%%parallel nprocs=2\n{source}\nlocks")
    assert reply.error is not None
    assert f"the last expression can't come back to the notebook: {why} End the" in reply.error[1]
    assert "End the cell in ';'" in reply.error[1]
    buried = (
        "import logging.handlers, threading\nlog = logging.NullHandler()\nlog.lock = threading.Lock()\n"
        "for _ in range(3):\n    log = logging.handlers.MemoryHandler(1, target=log)\n    log.lock = None\n"
        "[log]"
    )
    reply = notebook.run(f"%%parallel nprocs=2\n{buried}")
    assert reply.error is not None
    assert "notebook: at [0], _thread.lock can't be pickled" in reply.error[1]
    reply = notebook.run("%%parallel nprocs=2\nimport multiprocessing\nmultiprocessing.Pipe()")
    assert reply.error is not None
    assert "notebook: at [0], it is an open connection, which ends with its rank." in reply.error[1]
    reply = notebook.run("%%parallel nprocs=2\nimport torch\ntorch.empty(1, device='meta')")
    assert reply.error is not None
    assert "notebook: it is a meta tensor, which has no data. End the cell in ';'" in reply.error[1]


def test_what_libraries_make_of_the_cells_functions_comes_back_and_works(notebook: Kernel) -> None:
    source = """
import functools, torch
@torch.no_grad()
def still(x):
    return 2 * x
@functools.lru_cache
def cached(x):
    return x + rank
@functools.singledispatch
def kind(x):
    return "any"
@kind.register
def _(x: int):
    return "int"
still, cached, kind
"""
    notebook.run(f"%%parallel nprocs=2{source}").check()
    made = "[(still(x), cached(x), kind(x), kind('')) for x, (still, cached, kind) in enumerate(_)]"
    assert notebook.value(made) == [(0, 0, "int", "any"), (2, 2, "int", "any")]


def test_a_function_that_comes_back_has_what_the_cell_was_given(notebook: Kernel) -> None:
    source = "def mine():\n    return rank, nprocs, list(nbshm.claim([5]))\nmine"
    notebook.run(f"%%parallel nprocs=2\n{source}").check()
    notebook.run("mine, before = _, globals().pop('nbshm')").check()
    assert notebook.value("[each() for each in mine]") == [(0, 2, [5]), (1, 2, [5])]
    notebook.run("nbshm = before").check()


def test_what_is_part_of_an_autograd_graph_comes_back_without_it(notebook: Kernel) -> None:
    source = (
        "import torch\nw = torch.ones(2, requires_grad=True)\n"
        "loss = (w * 2).sum()\nloss.backward(retain_graph=True)\n"
        "v = torch.ones(2, requires_grad=True)\n(v ** 2).sum().backward(create_graph=True)\n"
        "back = [loss, {'sparse': (w * 3).to_sparse()}, w, v]\nloss"
    )
    reply = notebook.run(f"%%parallel nprocs=2 out=back\n{source}").check()
    assert reply.text.count("what was part of an autograd graph came back detached") == 1
    assert notebook.value("[(each.item(), each.requires_grad) for each in _]") == [(4.0, False)] * 2
    inside = "back[1][1]['sparse'].to_dense().tolist(), back[1][2].requires_grad, back[1][2].grad.tolist()"
    assert notebook.value(f"({inside})") == ([3.0, 3.0], True, [2.0, 2.0])
    assert notebook.value("(back[1][3].grad.tolist(), back[1][3].grad.requires_grad)") == ([2.0, 2.0], False)
    reply = notebook.run("%%parallel nprocs=2\nimport torch\ntorch.ones(1, requires_grad=True)").check()
    assert "detached" not in reply.text


@pytest.mark.parametrize(
    "cell", ["%%parallel nprocs=2\nFussy()", "%%parallel nprocs=2 out=made\nmade = Fussy()"]
)
def test_a_value_that_can_not_be_unpickled_is_told(notebook: Kernel, cell: str) -> None:
    reply = notebook.run(cell)
    assert reply.error is not None
    assert reply.error[0] == "ParallelError"
    assert "can't be unpickled here: ValueError: not in this process. Give back what" in reply.error[1]


def test_what_the_cell_defines_comes_back_and_works(notebook: Kernel) -> None:
    source = """
import math
FACTOR = 10
class Made:
    def __init__(self, number):
        self.number = number
    def scaled(self):
        return FACTOR * self.number + math.floor(0.5)
def add(x):
    return x + rank
Made(rank), add
"""
    notebook.run(f"%%parallel nprocs=2{source}").check()
    assert notebook.value("[(made.scaled(), add(1)) for made, add in _]") == [(0, 1), (10, 2)]
    assert notebook.value("['FACTOR' in globals(), 'rank' in globals(), 'math' in globals()]") == [False] * 3


def test_a_rank_gives_back_its_own_of_what_each_process_has_one_of(shared_notebook: Kernel) -> None:
    shared_notebook.run("import os, random, nbshm").check()
    body = "os.environ['OF_THE_RANK'] = str(rank); random.seed(rank)\nos.environ, random._inst"
    shared_notebook.run(f"%%parallel nprocs=2\n{body}").check()
    given = "[(environ['OF_THE_RANK'], generator.random()) for environ, generator in nbshm.last.results]"
    expected = "[(str(rank), random.Random(rank).random()) for rank in range(2)]"
    assert shared_notebook.value(f"{given} == {expected}")
