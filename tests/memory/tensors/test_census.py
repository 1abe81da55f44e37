"""Whether all that sees a storage is known, where `Tensor.numpy()` was called on it some time."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from memory_notebook import Notebook, in_segment

from nbshm.memory.tensors.appearances import pieces

BIG = 1_000_000


def seen() -> torch.Tensor:
    """Make a tensor that numpy has looked at, and looks at no longer."""
    tensor = torch.zeros(BIG)
    tensor.numpy()
    return tensor


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(BIG))
        self.weight.detach().numpy()


KEPT: list[object] = []


def closed(tensor: torch.Tensor):
    return lambda: tensor


def started(tensor: torch.Tensor):
    generator = (tensor for _ in range(3))
    next(generator)
    return generator


def with_grad() -> torch.Tensor:
    tensor = torch.zeros(BIG, requires_grad=True)
    tensor.grad = seen()
    return tensor


HELD = {
    "a name": seen,
    "a name and a list": lambda: KEPT.append(seen()) or KEPT[-1],
    "two lists": lambda: [[tensor := seen(), tensor], (tensor,)],
    "a dictionary": lambda: {"a": {"b": seen()}},
    "a parameter": Model,
    "a view in a list": lambda: [tensor := seen(), tensor[5:]],
    "a view alone": lambda: seen()[5:],
    "a closure": lambda: KEPT.append(closed(tensor := seen())) or tensor,
    "a class": lambda: KEPT.append(type("Holder", (), {"tensor": (tensor := seen())})) or tensor,
    "a generator": lambda: KEPT.append(started(tensor := seen())) or tensor,
    "a grad": with_grad,
}


@pytest.fixture(autouse=True)
def _let_go():
    yield
    KEPT.clear()


def the_tensor(value: object) -> torch.Tensor:
    """Return the first tensor in a value, or its grad."""
    while not isinstance(value, torch.Tensor):
        parts = value.parameters() if isinstance(value, Model) else value
        value = next(iter(parts.values() if isinstance(parts, dict) else parts))
    return value if value.grad is None else value.grad


@pytest.mark.parametrize("name", HELD)
def test_memory_that_numpy_no_longer_looks_at_is_moved(notebook: Notebook, name: str):
    notebook["t"] = HELD[name]()
    notebook.run("", "t")
    assert in_segment(notebook, the_tensor(notebook["t"]))


VIEWS = {
    "an array": lambda tensor: tensor.numpy(),
    "an array over part of it": lambda tensor: tensor[5:].numpy(),
    "an array over a detached one": lambda tensor: tensor.detach().numpy(),
    "a view of the array": lambda tensor: tensor.numpy()[5:][5:],
    "a memoryview": lambda tensor: memoryview(tensor.numpy()),
    "a tensor over the array": lambda tensor: torch.from_numpy(tensor.numpy()),
    "an array by DLPack": np.from_dlpack,
    "an iterator": lambda tensor: iter(tensor.numpy()),
    "a masked array": lambda tensor: np.ma.array(tensor.numpy(), copy=False),
    "an array of objects": lambda tensor: np.array([tensor.numpy(), None], dtype=object),
    "an array that holds the tensor itself": lambda tensor: np.array([None, tensor], dtype=object),
}


@pytest.mark.parametrize("name", VIEWS)
def test_memory_that_numpy_still_looks_at_is_not_moved(notebook: Notebook, name: str):
    notebook["t"] = seen()
    view = VIEWS[name](notebook["t"])
    notebook.run("t[20:] = 5", "t")
    assert not in_segment(notebook, notebook["t"])
    assert notebook["t"][-1] == 5
    del view
    gc.collect()
    notebook.run("t[20:] = 6", "t")
    assert in_segment(notebook, notebook["t"])
    assert notebook["t"][-1] == 6


def aligned() -> np.ndarray:
    made = np.zeros(BIG + 16, np.float32)
    start = -made.__array_interface__["data"][0] % 64 // 4
    return made[start : start + BIG]


FOREIGN = {
    "an array": lambda: np.zeros(BIG, np.float32),
    "an array at an aligned address": aligned,
    "a bytearray": lambda: bytearray(4 * BIG),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_memory_of_others_is_not_moved(notebook: Notebook, name: str):
    owner = FOREIGN[name]()
    notebook["t"] = torch.frombuffer(owner, dtype=torch.float32)
    notebook.run("t[1] = 5", "t")
    assert not in_segment(notebook, notebook["t"])
    assert np.frombuffer(owner, np.float32)[1] == 5


@pytest.mark.filterwarnings("ignore:Sparse")  # CSR is in beta, it says
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_memory_on_the_cpu_is_moved_whatever_the_default_device_is(notebook: Notebook, layout):
    notebook["t"], notebook["sparse"] = seen(), torch.eye(2).to_sparse(layout=layout)
    with torch.device("meta"):
        (came,) = notebook.run("t[1] = 5; result = sparse", "t", "sparse")
    assert in_segment(notebook, notebook["t"])
    assert came.device.type == "cpu"


def compressed() -> tuple[torch.Tensor, ...]:
    plain, columns, values = torch.arange(5), torch.arange(4), torch.ones(4)
    made = torch.sparse_csr_tensor(plain, columns, values, (4, 4), check_invariants=False)
    return made, plain, columns, values


CONSISTING = {
    "coordinates": lambda: (torch.eye(4).to_sparse(), None),
    "and views of values": lambda: (tensor := torch.eye(4).to_sparse(), tensor.values(), tensor.values()),
    "and indices": lambda: (tensor := torch.eye(4).to_sparse(), tensor.indices()),
    "of a parameter": lambda: (torch.nn.Parameter(torch.eye(4).to_sparse()), None),
    "compressed": lambda: (torch.eye(4).to_sparse_csr(), None),
    "compressed, and values": lambda: (tensor := torch.eye(4).to_sparse_csr(), tensor.values()),
    "compressed, and what it was made of": compressed,
    "nested": lambda: (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), None),
    "nested, and parts": lambda: (
        tensor := torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        *tensor.unbind(),
    ),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of", "ignore:Sparse")  # are in prototype and beta stage
@pytest.mark.parametrize("make", CONSISTING.values(), ids=CONSISTING)
def test_what_a_tensor_consists_of_is_moved(notebook: Notebook, make):
    notebook["t"], *others = make()
    notebook.namespace.update(enumerate(others))
    notebook.run("t.detach().values()[1] = 5", "t")
    assert all(in_segment(notebook, piece) for piece in pieces(notebook["t"]))
    assert notebook["t"].detach().values()[1] == 5


@pytest.mark.parametrize("look", [torch.from_dlpack, lambda part: part.numpy()], ids=["DLPack", "numpy"])
@pytest.mark.parametrize("other", [torch.Tensor.clone, torch.Tensor.detach], ids=["alone", "held by two"])
def test_a_part_of_a_sparse_tensor_that_others_look_at_is_not_moved(notebook: Notebook, look, other):
    notebook["t"] = torch.eye(4).to_sparse()
    notebook["other"] = other(notebook["t"])
    view = look(notebook["t"].indices())
    notebook.run("t.indices()[0, 3] = 0", "t", "other")
    assert not in_segment(notebook, notebook["t"].indices())
    assert view[0, 3] == 0


def test_a_frame_that_runs_may_look_too(notebook: Notebook):
    notebook["t"] = tensor = seen()
    notebook.run("t[0] = 5", "t")
    assert not in_segment(notebook, tensor)
    assert tensor[0] == 5
