"""`torch.distributed` in parallel cells, as it stands: groups, collectives, and ranks that fail in one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernels import Kernel, kernel

SETUP = """
import nbshm, os, select, signal, sys
import torch, torch.distributed as dist
ones = torch.ones(1)
"""

# Each rank has [rank, rank] and knows what every collective must make of that.
COLLECTIVES = """%%parallel nprocs=3
dist.init_process_group("gloo")
mine = torch.tensor([rank, rank])
ranks = range(nprocs)
each = [torch.tensor([other, other]) for other in ranks]

reduced = {name: mine.clone() for name in ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]}
for name, tensor in reduced.items():
    dist.all_reduce(tensor, getattr(dist.ReduceOp, name))
assert {name: tensor[0].item() for name, tensor in reduced.items()} == {
    "SUM": 3, "PRODUCT": 0, "MIN": 0, "MAX": 2, "BAND": 0, "BOR": 3, "BXOR": 3}

to_one = mine.clone()
dist.reduce(to_one, dst=2)
assert rank != 2 or to_one.tolist() == [3, 3]

sent = mine.clone()
dist.broadcast(sent, src=1)
assert sent.tolist() == [1, 1]

gathered = [torch.empty_like(mine) for _ in ranks]
dist.all_gather(gathered, mine)
assert all(torch.equal(a, b) for a, b in zip(gathered, each))

flat = torch.empty(2 * nprocs, dtype=mine.dtype)
dist.all_gather_into_tensor(flat, mine)
assert torch.equal(flat, torch.cat(each))

at_one = [torch.empty_like(mine) for _ in ranks] if rank == 0 else None
dist.gather(mine, at_one, dst=0)
assert rank != 0 or torch.equal(torch.cat(at_one), torch.cat(each))

part = torch.empty_like(mine)
dist.scatter(part, each if rank == 1 else None, src=1)
assert torch.equal(part, mine)

part = torch.empty_like(mine)
dist.reduce_scatter(part, [tensor.clone() for tensor in each])
assert part.tolist() == [3 * rank, 3 * rank]

part = torch.empty_like(mine)
dist.reduce_scatter_tensor(part, torch.cat(each))
assert part.tolist() == [3 * rank, 3 * rank]

exchanged = torch.empty(nprocs, dtype=mine.dtype)
dist.all_to_all_single(exchanged, torch.tensor([10 * rank + other for other in ranks]))
assert exchanged.tolist() == [10 * other + rank for other in ranks]

following, previous = (rank + 1) % nprocs, (rank - 1) % nprocs
received = torch.empty_like(mine)
for work in dist.batch_isend_irecv(
    [dist.P2POp(dist.isend, mine, following), dist.P2POp(dist.irecv, received, previous)]
):
    work.wait()
assert received.tolist() == [previous, previous]

objects = [None] * nprocs
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": other} for other in ranks]
objects = ["from one"] if rank == 1 else [None]
dist.broadcast_object_list(objects, src=1)
assert objects == ["from one"]

pair = dist.new_group([0, 2])
if rank != 1:
    both = mine.clone()
    dist.all_reduce(both, group=pair)
    assert both.tolist() == [2, 2]

dist.barrier()
dist.monitored_barrier()
later = mine.clone()
dist.all_reduce(later, async_op=True).wait()
(dist.get_rank(), dist.get_world_size(), later.tolist())
"""


@pytest.fixture(scope="module")
def notebook(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run(SETUP).check()
    return shared_notebook


def test_each_collective_gives_what_it_should_again_and_again(notebook: Kernel) -> None:
    for _ in range(2):  # neither destroys its group, and the second begins when the first has ended
        reply = notebook.run(COLLECTIVES).check()
        assert reply.result is not None
        assert notebook.value("list(_)") == [(0, 3, [3, 3]), (1, 3, [3, 3]), (2, 3, [3, 3])]


FAILING = """%%parallel nprocs=3
dist.init_process_group("gloo")
pids = [None] * nprocs
dist.all_gather_object(pids, os.getpid())
{body}
"""

# The others have failed, and told it, before this one says why: it waits until rank 0 has ended.
LAST_TO_SPEAK = """
try:
    if rank == 1: raise ValueError("mine")
    dist.all_reduce(ones)
finally:
    dist.destroy_process_group()
    if rank == 1: select.select([os.pidfd_open(pids[0])], [], [], 30)
"""


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("if rank == 1: raise ValueError('mine')\ndist.all_reduce(ones)", "RankRaised", "ValueError: mine"),
        ("if rank == 1: sys.exit('mine')\ndist.all_reduce(ones)", "RankDied", "mine"),
        ("if rank == 1: os._exit(3)\ndist.all_reduce(ones)", "RankDied", "exit code 3"),
        ("if rank == 1: os.kill(os.getpid(), signal.SIGKILL)\ndist.barrier()", "RankDied", "SIGKILL"),
        (LAST_TO_SPEAK, "RankRaised", "ValueError: mine"),
    ],
    ids=["raises", "exits", "ends", "killed", "last to speak"],
)
def test_a_rank_that_fails_is_told_and_not_those_that_waited_for_it(
    notebook: Kernel, body: str, kind: str, words: str
) -> None:
    reply = notebook.run(FAILING.format(body=body), timeout=30)
    assert reply.error is not None
    assert reply.error[0] == kind, reply.text
    assert words in reply.text
    assert "by peer" not in reply.text
    assert notebook.value("[failure.rank for failure in nbshm.last.failures]") == [1]


def test_a_peer_that_left_early_is_what_a_rank_says_it_is(notebook: Kernel) -> None:
    reply = notebook.run(FAILING.format(body="if rank == 0: dist.all_reduce(ones)"))
    assert reply.error is not None
    assert "rank 0 failed at" in reply.text
    assert "by peer" in reply.text


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Kernel]:
    with kernel(tmp_path) as running:
        running.run(SETUP).check()
        yield running


TOGETHER = """%%parallel nprocs=2
dist.init_process_group("gloo")
number = torch.full((), {number})
if rank == 0:  # the other notebook has its group, too, before either goes on
    for path, flag in {meetings}:
        os.close(os.open(path, flag))
dist.all_reduce(number)
int(os.environ["MASTER_PORT"]), number.item()
"""


def test_two_notebooks_at_once_keep_to_themselves(notebook: Kernel, another: Kernel, tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("there", "back")]
    for path in paths:
        os.mkfifo(path)
    sent = [
        each.send(TOGETHER.format(number=number, meetings=list(zip(paths, flags, strict=True))))
        for each, number, flags in [
            (notebook, 1, (os.O_RDONLY, os.O_WRONLY)),
            (another, 10, (os.O_WRONLY, os.O_RDONLY)),
        ]
    ]
    ports = []
    for each, message, expected in zip((notebook, another), sent, (2, 20), strict=True):
        each.finish(message).check()
        results = each.value("list(_)")
        assert [value for _, value in results] == [expected, expected]
        ports.append({port for port, _ in results})
    assert len(ports[0]) == len(ports[1]) == 1
    assert ports[0] != ports[1]


DATA_PARALLEL = """%%parallel nprocs=2 start_method={method}
import copy
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
DistributedDataParallel({model})
dist.destroy_process_group()
"""


@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
def test_a_model_that_the_ranks_share_is_no_replica_for_each(notebook: Kernel, method: str) -> None:
    notebook.run("net = torch.nn.Linear(2, 2)").check()
    told = notebook.run(DATA_PARALLEL.format(method=method, model="net")).check()
    assert told.text.count("DistributedDataParallel goes over a model that all ranks share") == 1
    assert "DistributedDataParallel(copy.deepcopy(net))" in told.text
    own = notebook.run(DATA_PARALLEL.format(method=method, model="copy.deepcopy(net)")).check()
    assert "goes over a model" not in own.text


OWN = "total = torch.zeros(2)\nparts = [torch.zeros(2) for _ in range(2)]\ntable = torch.zeros(2, 2)"
GROUP = 'dist.init_process_group("gloo")\nother = torch.zeros(2)\n'


@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
def test_a_sum_over_a_tensor_that_the_ranks_share_is_told_once(notebook: Kernel, method: str) -> None:
    notebook.run(OWN).check()
    body = f"{GROUP}total += rank\nfor _ in range(3): dist.all_reduce(total)"
    told = notebook.run(f"%%parallel nprocs=3 start_method={method}\n{body}", timeout=100).check().text
    assert told.count("all_reduce at In [") == 1
    assert "line 5 goes over a tensor of the notebook's, which all ranks share" in told
    assert "(x.clone(), copy.deepcopy(metric)), or leave all_reduce out." in told


@pytest.mark.parametrize(
    "call",
    [
        "reduce(total, 0)",
        "broadcast(total, 0)",
        "all_gather([other, other.clone()], total)",
        "gather(total, [other, other.clone()] if rank == 0 else None)",
        "scatter(total, parts if rank == 0 else None)",
        "reduce_scatter(total, [other, other])",
        "all_to_all_single(other, total)",
        "all_reduce(torch.nn.Parameter(total).data[1:])",
    ],
)
def test_what_each_rank_is_to_bring_or_get_for_itself_may_not_be_shared(notebook: Kernel, call: str) -> None:
    notebook.run(OWN).check()
    told = notebook.run(f"%%parallel nprocs=2\n{GROUP}dist.{call}").check().text
    assert f"{call.split('(', maxsplit=1)[0]} at In [" in told


def test_collectives_over_what_each_rank_has_for_itself_need_no_word(notebook: Kernel) -> None:
    """A part of the notebook's memory may be one rank's, and what all get alike may lie in one place."""
    notebook.run(OWN).check()
    right = """
mine = torch.full((2,), rank)
for _ in range(2):
    dist.all_reduce(mine)
    dist.all_reduce(parts[rank])
    dist.all_reduce(parts[1 - rank])
    dist.all_reduce(table[rank])
    dist.scatter(table[rank], parts if rank == 0 else None)
    dist.all_gather(list(table), parts[rank])
objects = [None] * nprocs
dist.all_gather_object(objects, total)
"""
    assert notebook.run(f"%%parallel nprocs=2\n{GROUP}{right}").check().text == ""


@pytest.mark.cuda
def test_a_sum_over_a_tensor_on_a_gpu_that_the_ranks_share_is_told(notebook: Kernel) -> None:
    notebook.run("total, parts = torch.zeros(2).cuda(), torch.zeros(2, 2).cuda()").check()
    shared = notebook.run(f"%%parallel nprocs=2\n{GROUP}dist.all_reduce(total)", timeout=100).check().text
    assert shared.count("all_reduce at In [") == 1
    own = notebook.run(f"%%parallel nprocs=2\n{GROUP}dist.all_reduce(parts[rank])", timeout=100).check().text
    assert own == ""


@pytest.mark.cuda
def test_a_model_on_a_gpu_that_the_ranks_share_is_no_replica_for_each(notebook: Kernel) -> None:
    notebook.run("net = torch.nn.Linear(2, 2).cuda()").check()
    told = notebook.run(DATA_PARALLEL.format(method="forkserver", model="net"), timeout=100)
    assert told.text.count("goes over a model that all ranks share") == 1


@pytest.mark.cuda
def test_nccl_works_with_a_device_for_each_rank_again_and_again(notebook: Kernel) -> None:
    notebook.run("devices = torch.cuda.device_count()").check()
    for _ in range(2):
        notebook.run(
            "%%parallel nprocs={devices}\n"
            "torch.cuda.set_device(nbshm.device())\n"
            'dist.init_process_group("nccl")\n'
            "number = torch.ones((), device=nbshm.device())\n"
            "dist.all_reduce(number)\n"
            "dist.destroy_process_group()\n"
            "number.item()",
            timeout=100,
        ).check()
        assert notebook.value("list(_) == [float(devices)] * devices") is True


@pytest.mark.cuda
def test_gloo_works_for_ranks_that_share_a_device(notebook: Kernel) -> None:
    notebook.run(
        "%%parallel nprocs=2\n"
        'dist.init_process_group("gloo")\n'
        'number = torch.ones((), device="cuda")\n'
        "dist.all_reduce(number)\n"
        "number.item()",
        timeout=100,
    ).check()
    assert notebook.value("list(_)") == [2.0, 2.0]
