"""Which parameters of the notebook's models a rank has given other memory."""

from __future__ import annotations

import time

import pytest
import torch
from kernels import Kernel
from torch import nn

from nbshm.worker.parameters import NotebooksParameters, in_words


def moved(code: str) -> list[str]:
    namespace = {"torch": torch, "nn": nn, "net": nn.Sequential(nn.Linear(2, 2)), "other": nn.Linear(2, 2)}
    parameters = NotebooksParameters(namespace)
    exec(code, namespace)  # noqa: S102  # the test's own
    return parameters.given_other_memory()


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
    assert "net.0.weight" in moved(code)


@pytest.mark.parametrize(
    "code",
    [
        "net[0].weight.data -= 1",
        "net[0].weight.data.copy_(torch.zeros(2, 2))",
        "torch.optim.SGD(net.parameters()).step()",
        "net[0].load_state_dict(other.state_dict())",
        "net.double()",
        "net.append(nn.Linear(2, 2))",
        "net = nn.Sequential(nn.Linear(2, 2))",
        "del net",
        "other.eval()",
    ],
)
def test_what_leaves_it_where_it_is_or_makes_another_model_is_not(code: str) -> None:
    assert moved(code) == []


def test_a_model_that_was_never_made_or_is_lazy_is_passed_over() -> None:
    namespace = {"raw": nn.Module.__new__(nn.Module), "lazy": nn.LazyLinear(2)}
    parameters = NotebooksParameters(namespace)
    namespace["lazy"](torch.ones(1, 3))
    assert parameters.given_other_memory() == []


def test_thousands_of_parameters_take_a_moment() -> None:
    net = nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(20_000)])
    begun = time.process_time()
    assert NotebooksParameters({"net": net}).given_other_memory() == []
    assert time.process_time() - begun < 1


def test_many_are_told_in_short() -> None:
    assert in_words(["net.weight"]).startswith("net.weight was given memory of this rank's own")
    assert in_words([f"net.{n}" for n in range(9)]).startswith("net.0, net.1, net.2 and 6 more were given")


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
