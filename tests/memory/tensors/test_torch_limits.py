"""What torch shares itself, where it has too little room (`torch_limits.py`, by way of `plain_torch.py`)."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path

import pytest
import torch
from memory_notebook import Notebook, in_segment
from torch.multiprocessing import reductions

from nbshm.bystanders.sweeper import remove_names
from nbshm.errors import NoRoom
from nbshm.memory.shared.limits import Room
from nbshm.memory.shared.segments import Segments
from nbshm.memory.tensors import torch_limits
from nbshm.memory.tensors.plain_torch import PlainTorch
from nbshm.memory.tensors.strategies import strategy, use_strategy

TIMEOUT = 60


@pytest.fixture(scope="module", autouse=True)
def _forkserver() -> Iterator[None]:
    forkserver.ensure_running()  # what it keeps is not to be taken for a leak
    yield
    forkserver._forkserver._stop()


@pytest.fixture(autouse=True)
def _hooked(notebook: Notebook) -> Iterator[None]:
    hook = PlainTorch(notebook.segments, keep=lambda _: None)
    hook.install()
    yield
    hook.remove()
    use_strategy("file_descriptor")
    # A process that ends gives up no name that it has used: torch's manager removes them after the last.
    remove_names([os.getpid()])


@pytest.fixture
def room(monkeypatch):
    def limit(nbytes: int, *, kind: str = "shared_memory_left") -> None:
        left = Room(nbytes=nbytes, where=kind, remedy="Make it larger.")
        monkeypatch.setattr(torch_limits, kind, lambda: left)

    return limit


def add(*tensors: torch.Tensor) -> None:
    for tensor in tensors:
        tensor.add_(1)


def in_child(*tensors: torch.Tensor, method: str = "spawn") -> int | None:
    process = multiprocessing.get_context(method).Process(target=add, args=tensors)
    process.start()
    process.join(TIMEOUT)
    exitcode = process.exitcode
    process.close()
    return exitcode


def test_what_is_too_big_for_dev_shm_is_moved_into_a_segment(notebook, room):
    room(3999)
    tensor = torch.zeros(1000)
    view = tensor.numpy()
    assert in_child(tensor) == 0
    assert tensor.sum() == 1000
    assert in_segment(notebook, tensor)
    assert view.sum() == 0  # what numpy has made of it goes on seeing the old memory


def test_share_memory_takes_a_segment_too_where_dev_shm_has_no_room(notebook, room):
    room(3999)
    tensor = torch.ones(1000).share_memory_()
    assert tensor.is_shared()
    assert in_segment(notebook, tensor)
    assert tensor.share_memory_().sum() == 1000


def test_a_name_needs_room_in_dev_shm(room):
    room(3999)
    use_strategy("file_system")
    tensor = torch.zeros(1000)
    before = tensor.data_ptr()
    with pytest.raises(NoRoom, match=r"a tensor that torch shares: 3\.9 KiB needed") as told:
        in_child(tensor)
    assert "Make it larger. Or use %shm_strategy file_descriptor" in str(told.value)
    assert tensor.data_ptr() == before


def test_a_name_whose_room_others_take_meanwhile_is_refused_likewise(monkeypatch):
    told = (Room(nbytes=nbytes, where="the room", remedy="Make it larger.") for nbytes in (1_000_000, 100))
    monkeypatch.setattr(torch_limits, "shared_memory_left", told.__next__)

    def full(*_, **__):
        raise RuntimeError("unable to allocate shared memory(shm) for file </torch_1_2_3>: No space left")

    storages = torch_limits.NewStorages(Segments())
    monkeypatch.setattr(storages, "original", full)
    use_strategy("file_system")
    with pytest.raises(NoRoom, match=r"3\.9 KiB needed, 100 bytes left in the room\. Make it larger"):
        storages.make(4000)


def test_what_is_too_big_for_all_memory_is_refused(room):
    room(3999)
    room(3000, kind="memory_left")
    with pytest.raises(NoRoom, match=r"2\.9 KiB left in memory_left\. Make it larger\.$"):
        in_child(torch.zeros(1000))


def test_what_is_bigger_than_a_file_may_be_is_refused(room):
    room(1_000_000, kind="largest_file")
    with pytest.raises(NoRoom, match=r"largest_file\. Make it larger\.$"):
        torch.zeros(1_000_000).share_memory_()
    assert torch.zeros(1000).share_memory_().is_shared()


def test_where_descriptors_are_few_storages_go_by_name_and_stay_where_they_are(monkeypatch):
    monkeypatch.setattr(torch_limits, "are_fewer_left_than", lambda _: True)
    tensor = torch.zeros(4)
    with pytest.warns(UserWarning, match="few file descriptors are left, so torch shares by name"):
        assert in_child(tensor) == 0
    monkeypatch.undo()
    moved_to = tensor.data_ptr()
    assert in_child(tensor) == 0
    assert tensor.tolist() == [2] * 4
    assert tensor.data_ptr() == moved_to
    assert strategy() == "file_descriptor"


def test_a_model_of_any_size_can_be_sent_along_with_a_forkserver_process(monkeypatch):
    monkeypatch.setattr(torch_limits, "_AT_A_START", 5)
    tensors = [torch.zeros(2) for _ in range(8)]
    with pytest.warns(UserWarning, match="the forkserver can hand over no more than about 250"):
        assert in_child(*tensors, method="forkserver") == 0
    assert sum(tensor.sum() for tensor in tensors) == 16
    assert len(list(Path("/dev/shm").glob("torch_*"))) >= 3  # noqa: S108  # it is only looked at


def test_a_manager_that_was_ended_is_told(monkeypatch):
    def fail(_):
        raise RuntimeError("Broken pipe")

    monkeypatch.setattr(reductions, "reduce_storage", fail)
    use_strategy("file_system")
    with pytest.raises(RuntimeError, match=r"torch_shm_manager.* has ended.*%shm_strategy file_descriptor"):
        in_child(torch.zeros(4))


def test_so_it_is_where_memory_is_shared_without_being_sent(monkeypatch):
    def fail(_):
        raise RuntimeError("Broken pipe")

    monkeypatch.setattr(torch.UntypedStorage, "_new_using_fd_cpu", fail)
    with pytest.raises(RuntimeError, match=r"torch_shm_manager.* has ended"):
        torch.zeros(4).share_memory_()
