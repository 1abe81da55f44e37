from __future__ import annotations

import io
import multiprocessing
from collections.abc import Iterator
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
import torch
from memory_notebook import Notebook, in_segment
from torch.multiprocessing import reductions

from nbshm.memory.tensors.plain_torch import PlainTorch

TIMEOUT = 60


def fill(*tensors: torch.Tensor) -> None:
    for number, tensor in enumerate(tensors, 3):
        tensor.fill_(number)


def run_in_child(*tensors: torch.Tensor) -> int | None:
    process = multiprocessing.get_context("spawn").Process(target=fill, args=tensors)
    process.start()
    process.join(TIMEOUT)
    exitcode = process.exitcode
    process.close()
    return exitcode


@pytest.fixture(autouse=True)
def hooked(notebook: Notebook) -> Iterator[PlainTorch]:
    hook = PlainTorch(notebook.segments, keep=lambda _: None)
    hook.install()
    yield hook
    hook.remove()


def test_storages_in_one_segment_are_handed_over_where_they_lie(notebook):
    first, second = notebook["first"], notebook["second"] = torch.zeros(5), torch.zeros(3)
    notebook.run("first[0] = 1", "first", "second")
    assert run_in_child(first, second, first[1:2]) == 0
    assert first.tolist() == [3, 5, 3, 3, 3]
    assert second.tolist() == [4, 4, 4]
    assert in_segment(notebook, first)


def test_thousands_of_storages_in_one_segment_take_one_descriptor(notebook, monkeypatch):
    many = notebook["many"] = [torch.zeros(2) for _ in range(2_000)]
    notebook.run("pass", "many")
    handed_over = []
    monkeypatch.setattr(reduction, "DupFd", handed_over.append)
    ForkingPickler.dumps(many)
    assert len(handed_over) == 1


def test_a_numpy_view_never_looks_at_freed_memory():
    tensor = torch.zeros(10_000_000)
    view = tensor.numpy()
    assert run_in_child(tensor) == 0
    assert tensor[0] == 3
    assert view.sum() == 0


def test_memory_of_an_array_outlives_the_move_of_a_tensor_over_it():
    array = np.ones(1_000_000)
    tensor = torch.from_numpy(array)
    assert run_in_child(tensor) == 0
    assert tensor[-1] == 3
    assert array.sum() == 1_000_000


def test_the_old_memory_is_kept_by_the_storage_itself():
    tensor = torch.zeros(1_000)
    view = tensor.numpy()
    assert run_in_child(tensor) == 0
    old = tensor.untyped_storage().memory_before
    assert old.data_ptr() == view.__array_interface__["data"][0]


@pytest.mark.parametrize("size", [9, 1_000_000])
def test_memory_that_nobody_else_sees_is_freed(size: int):
    tensor = torch.ones(size)
    rows = [tensor[5:]]
    assert tensor.share_memory_() is tensor
    assert tensor.is_shared()
    assert rows[0].sum() == size - 5
    alone = torch.ones(size).share_memory_()
    assert not hasattr(alone.untyped_storage(), "memory_before")


def test_what_a_dlpack_consumer_sees_is_kept():
    tensor = torch.ones(1_000)
    view = np.from_dlpack(tensor)
    tensor.share_memory_().zero_()
    assert view.sum() == 1_000
    assert tensor.untyped_storage().memory_before.data_ptr() == view.__array_interface__["data"][0]


def test_what_lies_in_a_segment_is_shared_already(notebook):
    tensor = notebook["t"] = torch.zeros(3)
    notebook.run("t += 1", "t")
    assert tensor.is_shared()
    assert tensor.share_memory_() is tensor
    assert in_segment(notebook, tensor)


def test_removing_puts_everything_of_torch_back(hooked):
    hooked.remove()
    table = ForkingPickler(io.BytesIO()).dispatch_table
    assert table[torch.UntypedStorage] is reductions.reduce_storage
    assert table[torch.Tensor] is table[torch.nn.Parameter] is reductions.reduce_tensor
    assert torch.Tensor.share_memory_.__module__ == torch.Tensor.is_shared.__module__ == "torch._tensor"
    assert not hasattr(torch.Tensor.is_shared, "__wrapped__")
    assert torch.UntypedStorage._new_shared.__module__ == "torch.storage"
