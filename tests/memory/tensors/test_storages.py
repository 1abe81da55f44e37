from __future__ import annotations

import numpy as np
import pytest
import torch
from memory_notebook import Notebook, in_segment

from nbshm.memory.shared.segments import Segment
from nbshm.memory.tensors.storages import can_move, move, swap


def test_this_torch_can_swap_the_memory_of_storages():
    assert can_move()
    first, second = torch.ones(3), torch.zeros(3)
    addresses = first.data_ptr(), second.data_ptr()
    swap(first.untyped_storage(), second.untyped_storage())
    assert (second.data_ptr(), first.data_ptr()) == addresses


def test_every_alias_follows_a_storage_that_is_moved():
    tensor = torch.arange(6.0)
    view, holder = tensor[2:], {"tensor": tensor}
    segment = Segment.create(4096)
    move(tensor.untyped_storage(), segment, 64)
    assert tensor.data_ptr() == view.data_ptr() - 8 == segment.address + 64
    assert holder["tensor"].tolist() == [0, 1, 2, 3, 4, 5]
    view[0] = 9
    assert np.frombuffer(segment.buffer, np.float32, 3, 64).tolist() == [0, 1, 9]


def holders():
    """Yield ways to see the memory of a tensor that its storage does not know of."""
    yield "numpy", lambda tensor: tensor.numpy()
    yield "numpy of a view", lambda tensor: tensor[1:].numpy()
    yield "numpy by DLPack", np.from_dlpack
    yield "numpy of a view by DLPack", lambda tensor: np.from_dlpack(tensor[1:])
    yield "torch by DLPack", torch.from_dlpack
    yield "memoryview", lambda tensor: memoryview(tensor.numpy())
    yield "a tensor over numpy's view", lambda tensor: torch.from_numpy(tensor.numpy())


@pytest.mark.parametrize(("name", "look"), list(holders()), ids=[name for name, _ in holders()])
def test_memory_that_others_look_at_is_not_moved(notebook: Notebook, name, look):
    tensor = notebook["t"] = torch.zeros(1_000_000)
    seen = look(tensor)
    notebook.run("t[1:3] = 5", "t")
    assert not in_segment(notebook, tensor), name
    assert 5 in (seen[0], seen[1])
    assert tensor[:3].tolist() == [0, 5, 5]


def test_memory_of_an_array_is_not_moved_by_a_tensor_over_it(notebook: Notebook):
    array = np.zeros(3)
    notebook["t"] = torch.from_numpy(array)
    notebook.run("t[0] = 5", "t")
    assert array[0] == 5


def test_a_view_that_only_a_list_holds_follows_a_big_tensor(notebook: Notebook):
    tensor = notebook["t"] = torch.zeros(1_000_000)
    rows = [tensor[5:]]
    notebook.run("t[5] = 1", "t")
    assert in_segment(notebook, tensor)
    assert rows[0][0] == 1


def test_a_graph_keeps_parameters_where_they_are_until_it_is_gone(notebook: Notebook):
    layer = notebook["layer"] = torch.nn.Linear(600, 600)
    loss = layer(torch.ones(1, 600, requires_grad=True)).sum()  # whose gradient needs the weight
    notebook.run("layer.weight.data[0, 0] = 5", "layer")
    assert layer.weight[0, 0] == 5
    assert not in_segment(notebook, layer.weight)
    del loss
    notebook.run("layer.weight.data[0, 0] = 6", "layer")
    assert layer.weight[0, 0] == 6
    assert in_segment(notebook, layer.weight)


def test_a_model_and_its_optimizer_move_as_one(notebook: Notebook):
    model = notebook["model"] = torch.nn.LSTM(3, 3)
    optimizer = notebook["optimizer"] = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3))[0].sum().backward()
    optimizer.step()
    notebook.run(
        "assert optimizer.param_groups[0]['params'][0] is next(model.parameters())\n"
        "for state in optimizer.state.values(): state['exp_avg'].fill_(7)",
        "model",
        "optimizer",
    )
    assert all(state["exp_avg"].eq(7).all() for state in optimizer.state.values())
    assert all(in_segment(notebook, parameter) for parameter in model.parameters())
    assert all(in_segment(notebook, parameter.grad) for parameter in model.parameters())


def test_a_lazy_object_is_not_woken_by_the_walk(notebook: Notebook):
    class Lazy:
        @property
        def __class__(self):
            raise AssertionError("woken")

    notebook["lazy"] = Lazy()
    tensor = notebook["t"] = torch.zeros(1_000_000)
    rows = [tensor[5:]]
    notebook.run("t[5] = 1", "t")
    assert rows[0][0] == 1
