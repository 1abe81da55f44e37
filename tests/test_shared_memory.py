"""What a person does about shared memory outside of a parallel cell, in a real kernel."""

from __future__ import annotations

import pytest
from kernels import Kernel


def test_what_is_shared_ahead_is_used_as_it_is(shared_notebook: Kernel):
    shared_notebook.run(
        "import numpy as np, torch, nbshm\n"
        "grid = nbshm.share(np.arange(6.0)); tail = grid[3:]\n"
        "made, weights = nbshm.zeros((2, 2)), nbshm.share(torch.nn.Linear(2, 2, bias=False))\n"
        "before = id(grid), id(made), weights.weight.data_ptr()"
    ).check()
    shared_notebook.run(
        "%%parallel nprocs=2\ngrid[3 + rank] = -1; made[rank] = rank + 1\n"
        "with torch.no_grad():\n    weights.weight[rank] = 7"
    ).check()
    assert shared_notebook.value("(id(grid), id(made), weights.weight.data_ptr()) == before")
    assert shared_notebook.value("(tail.tolist(), made.tolist())") == ([-1, -1, 5], [[1, 1], [2, 2]])
    assert shared_notebook.value("weights.weight.tolist()") == [[7, 7], [7, 7]]


SIMULATION = """
import numpy as np
class Base:
    def __init__(self): self.grid = np.zeros(3)
class Sim(Base):
    __slots__ = ("log",)
    def step(self, index): self.grid[index] += 1
class Failure(Exception): pass
ready = Sim()
"""


@pytest.mark.parametrize("start_method", ["forkserver", "fork"])
def test_what_objects_of_a_local_modules_classes_hold_is_shared(shared_notebook: Kernel, start_method: str):
    name = f"simulation_{start_method}"
    (shared_notebook.directory / f"{name}.py").write_text(SIMULATION)
    shared_notebook.run(
        f"import numpy as np, nbshm\nfrom {name} import Failure, Sim, ready\n"
        "sim, sims, failure, step = Sim(), {'a': [Sim()]}, Failure(np.zeros(3)), Sim().step\n"
        "class Sub(Sim): pass\nsub = Sub()"
    ).check()
    shared_notebook.run(
        f"%%parallel nprocs=2 start_method={start_method}\n"
        "for each in (sim, sims['a'][0], ready, sub): each.step(rank)\n"
        "step(rank); failure.args[0][rank] = 1"
    ).check()
    grids = "sim.grid, sims['a'][0].grid, ready.grid, sub.grid, step.__self__.grid, failure.args[0]"
    assert shared_notebook.value(f"[grid.tolist() for grid in ({grids})]") == [[1, 1, 0]] * 6
    shared_notebook.run("assert nbshm.share(sim) is sim").check()
    assert _row(shared_notebook, "sim").endswith(" moved")


def test_what_a_namespace_of_argparse_holds_is_shared(shared_notebook: Kernel):
    shared_notebook.run(
        "import argparse, nbshm, numpy as np\n"
        "args = argparse.Namespace(w=np.zeros(2), inner=[np.zeros(2)], step=0)"
    ).check()
    source = "%%parallel nprocs=2\nargs.w[rank] = args.inner[0][rank] = 1\nargs.step += 1"
    told = shared_notebook.run(source).check().text
    assert "What the cell writes into args.step (an int) stays in the ranks." in told
    assert shared_notebook.value("[args.w.tolist(), args.inner[0].tolist()]") == [[1, 1], [1, 1]]
    assert shared_notebook.run("nbshm.share(args) is args").check().result == {"text/plain": "True"}


def test_a_worker_shares_what_its_own_children_then_see(shared_notebook: Kernel):
    shared_notebook.run("import os, numpy as np, nbshm\nx = nbshm.zeros(3)").check()
    reply = shared_notebook.run(
        "%%parallel nprocs=1\n"
        "own = np.zeros(2); part = own[1:]\n"
        "same = nbshm.share(x) is x\n"
        "nbshm.share(own)\n"
        "made = nbshm.zeros(2)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    own[1], made[0], x[2] = 4, 5, 6\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "same, part.tolist(), made"
    ).check()
    assert reply.result == {"text/plain": "[(True, [4.0], array([5., 0.]))]"}
    assert shared_notebook.value("x.tolist()") == [0, 0, 6]


def test_a_sparse_tensor_is_used_without_a_warning_of_torchs_about_how_it_was_made(shared_notebook: Kernel):
    shared_notebook.run("import torch\nsparse = torch.eye(2).to_sparse_csr()").check()
    assert shared_notebook.run("%%parallel nprocs=1\nsparse.values()[0] = 5").check().text == ""
    assert shared_notebook.value("sparse.values().tolist()") == [5, 1]


def test_a_refusal_names_the_array_and_who_holds_it(shared_notebook: Kernel):
    reply = shared_notebook.run("held = np.ones(3); keep = {'a': [held]}\nnbshm.share(held)")
    assert reply.error is not None
    assert reply.error[1] == (
        "cannot share 'held': it is held by a list too. "
        "Share its copy(), or leave it to the parallel cell, which copies it in and back."
    )


def test_what_was_refused_is_shared_once_nothing_else_holds_it(shared_notebook: Kernel):
    refused = shared_notebook.run(
        "import numpy as np, nbshm\nagain = np.ones(3); store = [again]\nnbshm.share(again)"
    )
    assert refused.error is not None
    shared_notebook.run("del store\nagain = nbshm.share(again)").check()
    assert shared_notebook.value("again.tolist()") == [1, 1, 1]


def test_the_status_lists_names_rooms_and_what_keeps_memory(shared_notebook: Kernel):
    shared_notebook.run(
        "import numpy as np, nbshm\nwide, pinned = np.zeros((4, 5)), np.ones(6); store = [pinned]"
    ).check()
    shared_notebook.run("%%parallel nprocs=2\nwide[rank], pinned[rank] = 1, 2\nnp.ones(1 << 18)").check()
    lines = shared_notebook.run("%shm_status").check().stdout.splitlines()
    words = {line.split()[0]: line.split() for line in lines if line}
    assert lines[0].split() == ["name", "kind", "shape", "size", "segment", "shared"]
    assert words["wide"][:9] == ["wide", "array", "float64", "4", "x", "5", "160", "bytes", "fd"]
    assert words["wide"][-1] == "moved"
    why = "mirrored: it is held by the list 'store' too; nbshm.share(store) moves it"
    assert " ".join(words["pinned"][6:]) == why
    assert any(line.startswith("kept by Out[") and line.endswith("alone: 4.0 MiB") for line in lines)
    assert any(line.startswith("open descriptors: ") for line in lines)
    assert any(line.startswith("left in /dev/shm: ") for line in lines)


def test_an_array_that_was_shown_as_a_cells_value_moves_with_all_that_keeps_it(shared_notebook: Kernel):
    shared_notebook.run("shown = np.zeros((50, 50))").check()
    number = shared_notebook.run("shown").check() and shared_notebook.value("max(Out)")
    shared_notebook.run("%%parallel nprocs=2\nshown[rank] = 1").check()
    assert _row(shared_notebook, "shown").endswith(" moved")
    assert shared_notebook.value(f"shown is Out[{number}] is _{number} and int(shown.sum())") == 100


def test_a_function_is_a_row_for_the_arrays_that_it_holds_itself_alone(shared_notebook: Kernel):
    shared_notebook.run(
        "unused = np.zeros(4)\n"
        "def total(k):\n    return sum(k for _ in range(3))\n"
        "def with_default(k, table=np.ones(3)):\n    return k + table.sum()"
    ).check()
    shared_notebook.run("%%parallel nprocs=2\ntotal(rank), with_default(rank)").check()
    assert _row(shared_notebook, "with_default").startswith("with_default function 1 array")
    assert _row(shared_notebook, "total") == ""


def _row(notebook: Kernel, name: str) -> str:
    """Return what `%shm_status` says of a name."""
    lines = notebook.run("%shm_status").check().stdout.splitlines()
    rows = (" ".join(line.split()) for line in lines)
    return next((row for row in rows if row.startswith(f"{name} ")), "")


def test_the_status_cleans_up_after_the_dead_and_knows_no_other_word(shared_notebook: Kernel, tmp_path):
    shared_notebook.run(
        "import subprocess, sys, pathlib, nbshm.memory.shared.leftovers\n"
        "gone = subprocess.Popen([sys.executable, '-c', '']); gone.wait()\n"
        f"left = pathlib.Path({str(tmp_path)!r}, f'torch_{{gone.pid}}_1_0'); left.write_bytes(bytes(2048))\n"
        f"nbshm.memory.shared.leftovers.DIRECTORY = pathlib.Path({str(tmp_path)!r})"
    ).check()
    told = shared_notebook.run("%shm_status").check().stdout
    assert "left in /dev/shm by dead processes: 1 file of 2.0 KiB; %shm_status clean removes them" in told
    assert shared_notebook.run("%shm_status clean").stdout == "removed 1 file of 2.0 KiB from /dev/shm\n"
    assert (
        shared_notebook.run("%shm_status clean").stdout == "nothing of dead processes is left in /dev/shm\n"
    )
    assert not shared_notebook.value("left.exists()")
    assert "%shm_status knows 'clean', not 'all'." in shared_notebook.run("%shm_status all").stderr


_INODES = """
import os, nbshm, torch
from nbshm.extension import current_session
def inode(segments, array):
    segment = segments.find(array.__array_interface__["data"][0], array.nbytes)
    return os.fstat(segment.fd).st_ino
"""
_MADE = """%%parallel nprocs=2 out=made,tensor,before
from nbshm.sharing import _here
made = nbshm.zeros(1 << 18)
made[:] = rank
tensor = torch.from_numpy(made)[1:]
before = inode(_here.sharer.segments, made);
"""


def test_an_array_that_a_worker_makes_in_shared_memory_comes_back_without_a_copy(shared_notebook: Kernel):
    shared_notebook.run(_INODES).check()
    shared_notebook.run(_MADE).check()
    assert shared_notebook.value("[(float(a[-1]), float(t[0])) for a, t in zip(made, tensor)]") == [
        (0, 0),
        (1, 1),
    ]
    there = "[inode(current_session().segments, array) for array in made]"
    assert shared_notebook.value(f"before == {there}")
    shared_notebook.run("made[1][1] = 5").check()
    assert shared_notebook.value("float(tensor[1][0])") == 5


def test_a_small_part_of_a_workers_own_segment_comes_back_alone(shared_notebook: Kernel):
    shared_notebook.run(_INODES).check()
    cell = "%%parallel nprocs=1 out=part\npart = nbshm.zeros(1 << 20)[: 1 << 18]\npart[:] = 3"
    shared_notebook.run(cell).check()
    address = "part[0].__array_interface__['data'][0]"
    found = f"current_session().segments.find({address}, 1).nbytes"
    assert shared_notebook.value(f"(float(part[0].sum()), {found})") == (3 << 18, 8 << 18)


@pytest.mark.parametrize("items", ["torch.randperm(40)", "DataLoader(data, 1, shuffle=True)"])
def test_ranks_that_shuffle_for_themselves_are_refused_a_shared_loop(
    shared_notebook: Kernel, items: str
) -> None:
    source = "import torch\nfrom torch.utils.data import DataLoader\ndata = torch.rand(40, 3)"
    shared_notebook.run(source).check()
    body = f"items = iter(nbshm.claim({items}))\nnext(items)\nnbshm.barrier()"
    reply = shared_notebook.run(f"%%parallel nprocs=2\n{body}")
    assert "ValueError: claim: item" in reply.text
    assert "shuffle in the notebook before the cell" in reply.text


@pytest.mark.parametrize("start_method", ["forkserver", "fork"])
def test_ranks_may_write_into_the_rows_that_they_share(shared_notebook: Kernel, start_method: str) -> None:
    source = "import numpy as np, torch\nfirst, second = torch.zeros(9, 3), np.zeros((9, 3))"
    shared_notebook.run(source).check()
    body = (
        "for _ in range(2):\n"
        "    for row in nbshm.claim(first): row += 1\n"
        "    for i, row in nbshm.claim(enumerate(second)): row += 1\n"
        "    for row in nbshm.claim(list(second)): row += 1\n"
    )
    shared_notebook.run(f"%%parallel nprocs=2 start_method={start_method}\n{body}").check()
    assert shared_notebook.value("(first.sum().item(), second.sum().item())") == (54, 108)
