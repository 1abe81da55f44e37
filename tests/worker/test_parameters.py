"""Which parameters and buffers of the notebook's models a rank has given other memory."""

from __future__ import annotations

import time

import pytest
import torch
from kernels import Kernel
from torch import nn

from nbshm.worker.parameters import Moved, NotebooksParameters


class Statistics(nn.Module):
    """Has buffers: two that are its state, one that is not there yet, and a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("later", None)
        self.register_buffer("mask", torch.ones(2), persistent=False)


def moved(code: str) -> Moved:
    net = nn.Sequential(nn.Linear(2, 2), Statistics())
    namespace = {"torch": torch, "nn": nn, "net": net, "other": nn.Linear(2, 2)}
    parameters = NotebooksParameters(namespace)
    exec(code, namespace)  # noqa: S102  # the test's own
    return parameters.moved()


@pytest.mark.parametrize(
    "code",
    [
        "net[0].weight.data = net[0].weight.data - 1",
        "net[0].weight = nn.Parameter(torch.zeros(2, 2))",
        "net.load_state_dict({**net.state_dict(), '0.weight': torch.zeros(2, 2)}, assign=True)",
        "nn.utils.vector_to_parameters(torch.zeros(4), [net[0].weight])",
    ],
)
def test_what_gives_a_parameter_other_memory_is_noticed(code: str) -> None:
    assert "net.0.weight" in moved(code).replaced


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("net[1].mean = 0.9 * net[1].mean + 1", "net.1.mean"),
        ("net[1].steps = net[1].steps + 1", "net.1.steps"),
        ("net[1].norm.running_var = torch.zeros(2)", "net.1.norm.running_var"),
        ("net[1].mean.data = torch.ones(2)", "net.1.mean"),
    ],
)
def test_what_puts_another_buffer_in_the_place_of_one_is_noticed(code: str, path: str) -> None:
    assert moved(code).replaced == [path]


@pytest.mark.parametrize(
    "code",
    [
        "net[0].weight.data -= 1",
        "net[0].weight.data.copy_(torch.zeros(2, 2))",
        "torch.optim.SGD(net.parameters()).step()",
        "net[0].load_state_dict(other.state_dict())",
        "from torch.nn.utils import prune; prune.l1_unstructured(net[0], 'weight', 1)",
        "net.double()",
        "net.append(nn.Linear(2, 2))",
        "net = nn.Sequential(nn.Linear(2, 2))",
        "del net",
        "other.eval()",
        "net[1].norm(torch.ones(3, 2))",
        "net[1].eval(); net[1].norm(torch.ones(3, 2))",
        "net[1].mean.mul_(0.9).add_(1); net[1].steps += 1",
        "net[1].mean = net[1].mean.clone()",
        "net[1].mean = torch.ones(3)",
        "net[1].mean = None",
        "net[1].later = torch.ones(2)",
        "net[1].mask = torch.zeros(2)",
        "net.load_state_dict(net.state_dict())",
    ],
)
def test_what_leaves_it_where_it_is_or_makes_another_model_is_not(code: str) -> None:
    assert moved(code) == Moved()


def test_a_model_that_was_never_made_or_is_lazy_is_passed_over() -> None:
    namespace = {"raw": nn.Module.__new__(nn.Module), "lazy": nn.LazyLinear(2)}
    parameters = NotebooksParameters(namespace)
    namespace["lazy"](torch.ones(1, 3))
    assert parameters.moved() == Moved()


def test_thousands_of_parameters_take_a_moment() -> None:
    net = nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(20_000)])
    begun = time.process_time()
    assert NotebooksParameters({"net": net}).moved() == Moved()
    assert time.process_time() - begun < 1


def test_many_are_told_in_short() -> None:
    one, many = (Moved(replaced=paths) for paths in (["net.weight"], [f"net.{n}" for n in range(9)]))
    assert next(one.in_words()).startswith("net.weight was given memory of this rank's own")
    assert next(many.in_words()).startswith("net.0, net.1, net.2 and 6 more were given")


STEP = "net(torch.ones(1, 2)).sum().backward()\nfor p in net.parameters(): "


@pytest.mark.parametrize("start_method", ["forkserver", "fork"])
def test_steps_that_stay_in_a_rank_are_told_and_those_in_place_are_not(
    shared_notebook: Kernel, start_method: str
) -> None:
    shared_notebook.run("import torch\nnet = torch.nn.Linear(2, 1)").check()
    head = f"%%parallel nprocs=2 start_method={start_method}\n"
    told = shared_notebook.run(f"{head}{STEP}p.data = p.data - 0.1 * p.grad").check().text
    assert told.count("net.weight and net.bias were given memory of this rank's own") == 1
    assert "p.data -= ..." in told
    assert shared_notebook.run(f"{head}{STEP}p.data -= 0.1 * p.grad").check().text == ""


SHARDING = """
import copy
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
mesh = init_device_mesh("cpu", (nprocs,))
"""


@pytest.fixture
def sharding(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run("import torch\nnet = torch.nn.Sequential(torch.nn.Linear(2, 2))").check()
    return shared_notebook


@pytest.mark.parametrize(
    "call", ["fully_shard(net, mesh=mesh)", "parallelize_module(net, mesh, {'0': ColwiseParallel()})"]
)
def test_a_model_that_is_sharded_is_told_once_a_rank(sharding: Kernel, call: str) -> None:
    told = sharding.run(f"%%parallel nprocs=2\n{SHARDING}{call};").check().text
    assert told.count("[ranks 0-1] nbshm: net.0.weight and net.0.bias were sharded") == 1


def test_what_the_line_says_of_sharding_is_right(sharding: Kernel) -> None:
    """A copy that is sharded needs no word, and its parameters come home whole."""
    body = f"""{SHARDING}
sharded = fully_shard(copy.deepcopy(net), mesh=mesh)
with torch.no_grad():
    for p in sharded.parameters(): p.fill_(7)
net.load_state_dict(get_model_state_dict(sharded, options=StateDictOptions(full_state_dict=True)));
"""
    assert sharding.run(f"%%parallel nprocs=2\n{body}").check().text == ""
    assert sharding.value("[p.unique().tolist() for p in net.parameters()]") == [[7.0], [7.0]]


def test_buffers_that_a_forward_puts_in_the_place_of_others_are_told(shared_notebook: Kernel) -> None:
    shared_notebook.run(
        "import torch\n"
        "class Average(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.register_buffer('mean', torch.zeros(2))\n"
        "    def forward(self, x):\n"
        "        self.mean = 0.9 * self.mean + 0.1 * x\n"
        "average = Average()"
    ).check()
    told = shared_notebook.run("%%parallel nprocs=2\naverage(torch.ones(2))").check().text
    assert told.count("average.mean was given memory of this rank's own") == 1
    assert "buffer.copy_(...)" in told
