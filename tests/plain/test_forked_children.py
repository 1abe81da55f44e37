"""A child that the notebook's code forks has a copy of what a parallel cell has moved, as of all memory."""

from __future__ import annotations

import pytest
from kernels import Kernel

SETUP = """
import concurrent.futures, multiprocessing as mp, numpy as np, os, torch, torch.multiprocessing as tmp
import nbshm
from torch.utils.data import DataLoader, Dataset
context = mp.get_context("fork")
together = context.Barrier(2)
def work(value):
    "Use an array and a tensor of the notebook as scratch, beside another process that does so too."
    scratch[:], tensor[:] = value, value
    together.wait(60)
    return scratch.mean(), tensor.mean().item()
class Items(Dataset):
    def __init__(self): self.x = torch.zeros(8, 4)
    def __len__(self): return 8
    def __getitem__(self, i):
        x = self.x[i]
        x += 1
        return x
def in_child(function):
    pid = os.fork()
    if pid == 0:
        try:
            function()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
def fill(x, value=5): x[:] = value
scratch, tensor, items = np.zeros(100_000), torch.zeros(1000), Items()
"""
USED = "%%parallel nprocs=2\nscratch.sum() + tensor.sum() + items.x.sum()"


@pytest.fixture(scope="module")
def notebook(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run(SETUP).check()
    shared_notebook.run(USED).check()
    return shared_notebook


def test_a_pool_s_processes_have_memory_of_their_own(notebook: Kernel):
    notebook.run(
        "with context.Pool(2) as pool: found = sorted(pool.map(work, [1, 2], chunksize=1))\n"
        "assert found == [(1, 1), (2, 2)], found\n"
        "with concurrent.futures.ProcessPoolExecutor(2, context) as pool:\n"
        "  found = list(pool.map(work, [3, 4]))\n"
        "assert found == [(3, 3), (4, 4)], found\n"
        "assert scratch.sum() == tensor.sum() == 0"
    ).check()


def test_a_loader_s_workers_write_into_their_own(notebook: Kernel):
    notebook.run(
        "loader = DataLoader(items, batch_size=2, num_workers=2, multiprocessing_context='fork')\n"
        "for _ in range(2): assert all((batch == 1).all() for batch in loader)\n"
        "assert items.x.sum() == 0"
    ).check()


def test_what_a_child_has_written_is_what_it_sends(notebook: Kernel):
    notebook.run(
        "def send(queue):\n"
        "    tensor[:10] = 7\n"
        "    queue.put((tensor[:20], tensor.is_shared()))\n"
        "queue = tmp.get_context('fork').Queue()\n"
        "child = context.Process(target=send, args=(queue,)); child.start()\n"
        "received, was_shared = queue.get(timeout=60)\n"
        "child.join()\n"
        "assert received.tolist() == [7] * 10 + [0] * 10 and not was_shared\n"
        "assert tensor.sum() == 0 and tensor.is_shared()"
    ).check()


@pytest.mark.parametrize(
    "share",
    [
        "x = nbshm.zeros(1000)",
        "x = np.zeros(1000); x = nbshm.share(x)",
        "x = torch.zeros(1000).share_memory_()",
        "x = torch.zeros(1000); nbshm.share(x)",
        "x = torch.zeros(1000)\n%parallel_use x\nx.share_memory_()",
        "x = np.zeros(1000)\n%parallel_use x\nx = nbshm.share(x)",
        "x = torch.zeros(1000)\n%parallel_use x\ncontext.SimpleQueue().put(x)",
    ],
)
def test_what_was_asked_to_be_shared_is_shared_with_children(notebook: Kernel, share: str):
    before, use, after = share.partition("\n%parallel_use x\n")
    notebook.run(before).check()
    if use:
        notebook.run("%%parallel nprocs=2\nx.sum()").check()
    notebook.run(f"{after}\nin_child(lambda: fill(x))\nassert x.sum() == 5000, x").check()


def test_results_are_the_notebook_s_own(notebook: Kernel):
    notebook.run("%%parallel nprocs=2 out=big\nbig = np.zeros(2**20)").check()
    notebook.run("in_child(lambda: fill(big[0]))\nassert big[0].sum() == 0").check()


def test_children_of_ranks_have_copies_and_forked_ranks_none(notebook: Kernel):
    notebook.run("kept = np.zeros(4)").check()
    for method in ("forkserver", "fork"):
        notebook.run(
            f"%%parallel nprocs=2 start_method={method}\n"
            "kept[rank] += 1\n"
            "in_child(lambda: fill(kept, 9))\n"
            "assert kept[rank] < 9"
        ).check()
    assert notebook.value("kept.tolist()") == [2, 2, 0, 0]


@pytest.mark.parametrize("method", ["forkserver", "fork"])
@pytest.mark.parametrize(
    "made",
    [
        "x = nbshm.share(np.zeros(4))",
        "x = torch.zeros(4).share_memory_()",
        "raw = mp.RawArray('d', 4); x = np.frombuffer(raw)",
    ],
)
def test_children_of_ranks_share_what_the_notebook_has_shared(notebook: Kernel, made: str, method: str):
    notebook.run(made).check()
    notebook.run(
        f"%%parallel nprocs=2 start_method={method}\n"
        "in_child(lambda: fill(x[rank : rank + 1], 9))\n"
        "assert x[rank] == 9"
    ).check()
    assert notebook.value("x.tolist()") == [9, 9, 0, 0]
