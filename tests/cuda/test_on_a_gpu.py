"""CUDA tensors in parallel cells and in plain multiprocessing, on a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from kernels import Kernel

pytestmark = pytest.mark.cuda

SETUP = """
import multiprocessing as mp, os, signal, threading
import torch, nbshm
context = mp.get_context("forkserver")
first, second = context.Queue(), context.Queue()
torch.zeros(1, device="cuda")
class Pair:
    def __init__(self, tensor): self.tensor, self.head = tensor, tensor[:1]
def held():
    torch.cuda.synchronize(); torch.cuda.ipc_collect()
    return torch.cuda.memory_allocated()
"""


@pytest.fixture(scope="module")
def notebook(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run(SETUP).check()
    return shared_notebook


def cell(notebook: Kernel, body: str, options: str = "nprocs=2") -> str:
    return notebook.run(f"%%parallel {options}\n{body}", timeout=100).check().text


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_ranks_write_into_the_notebooks_tensor_and_leave_its_memory_as_it_was(notebook, method):
    notebook.run("g = torch.ones(4, device='cuda'); host = torch.zeros(2); before = held()").check()
    options = f"nprocs=2 start_method={method}"
    cell(notebook, "host[rank] = torch.full((8,), 2.0, device='cuda').sum().item()", options)
    cell(notebook, "g[rank] += 5", options)  # and nobody has waited for the GPU
    assert notebook.value("(host.tolist(), g.tolist())") == ([16, 16], [6, 6, 1, 1])
    assert notebook.value("held() == before") is True
    notebook.run("del g").check()
    assert notebook.value("before - held()") == 512  # the least that torch gives out


def test_views_layouts_grads_and_objects_arrive_as_they_are(notebook):
    notebook.run(
        "base = torch.arange(24., device='cuda').view(2, 3, 4)\n"
        "turned, strided = base.permute(2, 0, 1), base[:, ::2, 1::2]\n"
        "dtypes = [torch.bfloat16, torch.bool, torch.cfloat]\n"
        "kinds = {dtype: torch.ones(3, dtype=dtype, device='cuda') for dtype in dtypes}\n"
        "sparse = torch.eye(3, device='cuda').to_sparse()\n"
        "conj = torch.tensor([1 + 2j], device='cuda').conj()\n"
        "layer = torch.nn.Linear(2, 2).cuda(); layer(torch.ones(1, 2, device='cuda')).sum().backward()\n"
        "pair, empty = Pair(torch.zeros(2, device='cuda')), torch.empty(0, 3, device='cuda')\n"
        "generator, other = (torch.Generator(device='cuda').manual_seed(3) for _ in range(2))\n"
        "drawn = torch.rand(2, generator=other, device='cuda').tolist()\n"
        "expected = turned.tolist(), strided.tolist(), conj.tolist(), layer.weight.grad.tolist()"
    ).check()
    cell(
        notebook,
        "assert (turned.tolist(), strided.tolist(), conj.tolist(), layer.weight.grad.tolist()) == expected\n"
        "assert turned.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()\n"
        "assert all(tensor.dtype is kind and tensor.sum() for kind, tensor in kinds.items())\n"
        "assert sparse.to_dense().sum() == 3 and empty.shape == (0, 3) and empty.is_cuda\n"
        "assert isinstance(layer.weight, torch.nn.Parameter) and layer.weight.requires_grad\n"
        "assert torch.rand(2, generator=generator, device='cuda').tolist() == drawn\n"
        "pair.head += 1; layer.weight.grad.zero_()\n",
        "nprocs=1",
    )
    assert notebook.value("(pair.tensor.tolist(), layer.weight.grad.sum().item())") == ([1, 0], 0)


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_results_are_the_notebooks_own_memory_when_their_rank_has_ended(notebook, method):
    notebook.run("g = torch.ones(3, device='cuda')").check()
    body = "made = torch.full((1 << 20,), float(rank), device='cuda')\ng[1:], made, made[:1]"
    cell(notebook, body, f"nprocs=2 start_method={method}")
    notebook.run(
        "kept = list(_); torch.cuda.empty_cache(); noise = torch.rand(1 << 22, device='cuda')"
    ).check()
    assert notebook.value("[made.sum().item() for _, made, _ in kept]") == [0, 1 << 20]
    notebook.run("kept[0][0][0] = 7; kept[1][1][0] = 8").check()
    assert notebook.value("(g.tolist(), kept[1][2].item())") == ([1, 7, 1], 8)
    assert notebook.value("all(made.is_cuda for _, made, _ in kept)") is True


def test_a_model_and_its_optimizer_train_the_notebooks_parameters(notebook):
    notebook.run(
        "model = torch.nn.Linear(1, 1).cuda(); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "before = model.weight.item()"
    ).check()
    cell(
        notebook,
        "x = torch.ones(8, 1, device='cuda')\n"
        "for _ in range(20):\n"
        "    optimizer.zero_grad(); (model(x) - 3).square().mean().backward(); optimizer.step()",
    )
    assert notebook.value("abs(model(torch.ones(1, 1, device='cuda')).item() - 3) < 0.5") is True
    assert notebook.value("model.weight.item() != before") is True


def test_what_ranks_use_stays_when_the_notebook_drops_it(notebook):
    notebook.run("kept = torch.full((1 << 20,), 2.0, device='cuda'); go_on = context.Event()").check()
    cell(notebook, "go_on.wait(60)\nkept.sum().item()", "nprocs=2 background=job")
    notebook.run(
        "del kept; torch.cuda.empty_cache(); noise = torch.rand(1 << 21, device='cuda'); go_on.set()\n"
        "job.wait(); totals = list(job.results)",
        timeout=100,
    ).check()
    assert notebook.value("totals") == [2 << 20] * 2


def test_memory_on_the_cpu_is_shared_as_ever(notebook):
    notebook.run(
        "torch.set_default_device('cuda')\n"
        "host, big = (torch.zeros(count, device='cpu') for count in (2, 1 << 20))\n"
        "seen, view = host.numpy(), big.numpy()\n"
        "pinned = torch.zeros(1 << 16, device='cpu').pin_memory(); old = pinned.data_ptr()"
    ).check()
    try:
        cell(notebook, "host[rank] += 1; big[rank] += 2; pinned[rank] += 3\ntorch.zeros(1).device.type")
        assert notebook.value("list(_)") == ["cuda", "cuda"]
    finally:
        notebook.run("torch.set_default_device(None)").check()
    assert notebook.value("[t[:2].tolist() for t in (host, seen, big, view, pinned)]") == [
        [1, 1],
        [1, 1],
        [2, 2],
        [2, 2],
        [3, 3],
    ]
    assert notebook.value("pinned.is_pinned() and pinned.data_ptr() == old") is True
    assert "it is pinned for a GPU" in notebook.run("%shm_status").check().text


def test_random_numbers_differ_by_rank_and_repeat_with_the_notebooks_seed(notebook):
    drawn = []
    for _ in range(2):
        notebook.run("torch.manual_seed(1)").check()
        cell(notebook, "torch.rand(2, device='cuda').tolist()")
        drawn.append(notebook.value("list(_)"))
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[0][1]


def test_a_rank_stays_for_those_that_have_what_it_has_put_on_a_queue(notebook):
    cell(
        notebook,
        "if rank == 0:\n"
        "    first.put(torch.full((1 << 20,), 3.0, device='cuda'))\n"
        "else:\n"
        "    try: nbshm.barrier()\n"
        "    except threading.BrokenBarrierError: pass  # rank 0 has finished\n"
        "    got = first.get(timeout=60)\n"
        "    assert got.sum().item() == 3 << 20",
    )


def test_a_tensor_that_is_sent_twice_is_finished_each_time(notebook):
    cell(
        notebook,
        "if rank == 0: sent = torch.zeros(1 << 22, device='cuda')\n"
        "for turn in (1, 2):\n"
        "    if rank == 0:\n"
        "        torch.cuda._sleep(200_000_000)  # cycles of the GPU, before it adds\n"
        "        sent += 1; first.put(sent); second.get(timeout=60)\n"
        "    else:\n"
        "        got = first.get(timeout=60)\n"
        "        assert got[-1].item() == turn\n"
        "        second.put(turn)",
    )


def test_what_was_received_is_sent_on_as_a_clone(notebook):
    cell(
        notebook,
        "value = None\n"
        "if rank == 0: first.put(torch.ones(2, device='cuda'))\n"
        "elif rank == 1: value = first.get(timeout=60); second.put(value)\n"
        "else: value = second.get(timeout=60); value += 1\n"
        "value",
        "nprocs=3",
    )
    assert notebook.value("[None if it is None else it.tolist() for it in _]") == [None, [1, 1], [2, 2]]


def test_put_and_get_in_one_process_is_the_same_tensor(notebook):
    body = (
        "mine = torch.ones(1, device='cuda')\nfirst.put(mine)\ngot = first.get(timeout=60)\n"
        "got += 1\nassert mine.item() == 2\n"
        "first.put(torch.empty(0, 3, device='cuda')); assert first.get(timeout=60).shape == (0, 3)\n"
        "first.put(torch.nested.nested_tensor([torch.ones(2), torch.zeros(1)], device='cuda'))\n"
        "assert first.get(timeout=60).to_padded_tensor(-1).tolist() == [[1, 1], [0, -1]]"
    )
    cell(notebook, body, "nprocs=1")
    notebook.run(body).check()


def test_what_nobody_takes_is_told(notebook):
    text = cell(notebook, "if rank == 1: first.put(torch.ones(1, device='cuda'))")
    assert "a CUDA tensor that it has put on a queue was not taken" in text
    assert "can't be opened here" in notebook.run("first.get(timeout=60)").text


def test_a_rank_that_is_killed_leaves_no_memory_of_the_notebooks_in_use(notebook):
    notebook.run("g = torch.ones(1 << 20, device='cuda'); before = held()").check()
    reply = notebook.run("%%parallel nprocs=2\ng += 1\nif rank == 0: os.kill(os.getpid(), signal.SIGKILL)")
    assert reply.error is not None
    notebook.run("del g").check()
    assert notebook.value("before - held()") == 4 << 20


def test_a_producer_keeps_its_tensors_until_the_consumer_says_that_it_is_done(notebook):
    """torch's documentation advises this; the producer and the consumer are functions of the notebook."""
    notebook.run(
        "def produce(rank, queue, done):\n"
        "    queue.put(torch.arange(4., device='cuda')); done.wait(60)\n"
        "producing = torch.multiprocessing.get_context('spawn')\n"
        "queue, done = producing.Queue(), producing.Event()\n"
        "children = torch.multiprocessing.spawn(produce, (queue, done), nprocs=1, join=False)\n"
        "got = queue.get(timeout=60); total = got.sum().item()",
        timeout=100,
    ).check()
    reply = notebook.run("%%parallel nprocs=1\ngot")
    assert reply.error is not None
    assert "cannot share 'got': it was received from another process" in reply.text
    notebook.run("del got; done.set(); children.join()", timeout=100).check()
    assert notebook.value("total") == 6


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("torch.ones(1, device='cuda')[torch.tensor([5], device='cuda')]\nNone", "CUDA error"),
        ("torch.empty(1 << 50, dtype=torch.uint8, device='cuda')", "CUDA out of memory"),
    ],
    ids=["that nobody waited for", "out of memory"],
)
def test_an_error_on_the_gpu_is_the_ranks_own(notebook, body, words):
    reply = notebook.run(f"%%parallel nprocs=1\n{body}", timeout=100)
    assert reply.error is not None
    assert reply.error[0] == "RankRaised"
    assert words in reply.text
    notebook.run("torch.ones(1, device='cuda').sum().item()").check()  # the notebook's context is well


def test_fork_is_refused_once_cuda_is_initialised(notebook):
    assert (
        "CUDA is initialised in this kernel"
        in notebook.run("%%parallel nprocs=1 start_method=fork\nrank").text
    )


def test_nothing_of_the_ranks_is_left_in_dev_shm(notebook):
    def names() -> set[str]:
        return {path.name for path in Path("/dev/shm").glob("torch_*")}  # noqa: S108  # it is only read

    before = names()
    for method in ("forkserver", "spawn"):
        cell(notebook, "torch.ones(1, device='cuda')", f"nprocs=2 start_method={method}")
    assert names() <= before


PROGRAM = """
import torch
def main():
    get_ipython().run_line_magic("load_ext", "nbshm")
    get_ipython().user_ns.update(torch=torch, g=torch.ones(2, device="cuda"))
    get_ipython().run_cell_magic("parallel", "nprocs=2", "g[rank] += 1")
    assert get_ipython().user_ns["g"].tolist() == [2, 2]
main()
"""


def test_who_has_handed_memory_over_ends_well(tmp_path):
    program = tmp_path / "program.ipy"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "IPython", "--quick", "--no-banner", str(program)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=100, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
