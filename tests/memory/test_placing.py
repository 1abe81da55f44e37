from __future__ import annotations

import gc
import mmap
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
import torch
from memory_notebook import Notebook, in_segment, memory_of

from nbshm.errors import NoRoom


def test_writes_to_a_tensor_are_seen_through_every_alias(notebook):
    tensor = notebook["a"] = torch.zeros(4)
    keep, row = [tensor], tensor[1:3]
    notebook.run("a[rank] = rank + 1", "a", ranks=2)
    assert tensor.tolist() == [1, 2, 0, 0]
    assert notebook["a"] is tensor is keep[0]
    tensor[1] = 50
    assert row.tolist() == [50, 0]


def test_rebinding_in_a_worker_stays_there(notebook):
    notebook["c"] = torch.zeros(4)
    notebook.run("c = c + 1", "c")
    assert notebook["c"].tolist() == [0] * 4


def test_a_tensor_is_moved_once(notebook):
    tensor = notebook["a"] = torch.zeros(4)
    notebook.run("a += 1", "a")
    address = tensor.data_ptr()
    notebook.run("a += 1", "a")
    assert in_segment(notebook, tensor)
    assert tensor.data_ptr() == address
    assert tensor.tolist() == [2] * 4


def test_a_named_array_moves_with_all_its_names_and_views(notebook):
    notebook["x"] = np.zeros((4, 3))
    notebook["column"], notebook["same"] = notebook["x"][:, 1], notebook["x"]
    notebook.out[3] = notebook["x"]
    notebook.run("x[rank] = rank + 1", "x", ranks=2)
    assert in_segment(notebook, notebook["x"])
    assert notebook["x"] is notebook["same"] is notebook.out[3]
    assert np.shares_memory(notebook["x"], notebook["column"])
    assert notebook["column"].tolist() == [1, 2, 0, 0]


def test_naming_a_view_moves_the_array_that_it_is_a_view_of(notebook):
    notebook["base"] = np.arange(12.0)
    notebook["tail"] = notebook["base"][3:].reshape(3, 3)
    notebook.run("tail += 100", "tail")
    assert notebook["base"].tolist() == [0, 1, 2, *range(103, 112)]
    assert np.shares_memory(notebook["base"], notebook["tail"])
    assert in_segment(notebook, notebook["base"])


def test_an_array_that_something_else_holds_stays_and_is_copied_back(notebook):
    array = notebook["x"] = np.zeros((4, 3))
    holder = {"x": array}
    notebook.run("x[rank] = rank + 1", "x", ranks=2)
    assert notebook["x"] is array is holder["x"]
    assert not in_segment(notebook, array)
    assert array[:, 0].tolist() == [1, 2, 0, 0]


def test_a_mirror_is_copied_back_after_a_failure_too(notebook):
    array = notebook["x"] = np.zeros(3)
    with pytest.raises(ZeroDivisionError):
        notebook.run("x[0] = 1; 1 / 0", "x")
    assert array[0] == 1


def test_copying_back_twice_does_no_harm(notebook):
    array = notebook["x"] = np.zeros(3)
    _, placement = notebook.place("x")
    with placement:
        placement.copy_back()
        placement.copy_back()
    assert array.tolist() == [0, 0, 0]


@pytest.mark.parametrize("made", ["tensor under a graph", "tensor under a view", "array in a list"])
def test_what_will_be_copied_back_does_not_move_though_nothing_else_holds_it_any_more(notebook, made):
    match made:
        case "tensor under a graph":
            notebook["x"] = torch.ones(1 << 20, requires_grad=True)
            holder = notebook["x"] ** 2
        case "tensor under a view":
            notebook["x"] = torch.ones(1 << 20)
            holder = notebook["x"].numpy()
        case _:
            notebook["x"] = np.ones(1 << 20)
            holder = [notebook["x"]]
    before = memory_of(notebook["x"])
    _, in_background = notebook.place("x")
    with in_background:
        del holder
        with notebook.place("x")[1] as meanwhile:
            assert meanwhile.mirrored() == in_background.mirrored() != []
        assert memory_of(notebook["x"]) == before
    with notebook.place("x")[1] as afterwards:
        assert not afterwards.mirrored()
    assert memory_of(notebook["x"]) != before


@pytest.mark.parametrize("length", [6, 1 << 20])
def test_a_storage_is_copied_back_to_where_it_is_when_the_notebook_has_resized_it(notebook, length):
    notebook["t"] = torch.zeros(4)
    holder = [[notebook["t"][:2]]]
    payload, placement = notebook.place("t")
    with placement:
        assert placement.mirrored()
        notebook["t"].resize_(length)[4:] = 7
        address = memory_of(notebook["t"])
        assert placement.mirrored() == [(address, address + 16)]
        child = notebook._children[0]
        child.send(payload, placement, "t += 1; result = t.numpy()")
        result = child.receive(placement)
        placement.copy_back()
    assert notebook["t"][:6].tolist() == [1, 1, 1, 1, 7, 7]
    assert memory_of(result) == memory_of(notebook["t"])
    assert holder[0][0].tolist() == [1, 1]


def test_a_tensor_that_torch_has_moved_away_from_its_array_gets_what_was_written_too(notebook):
    array = notebook["a"] = np.zeros(4)
    notebook["t"] = torch.from_numpy(array)
    payload, placement = notebook.place("a", "t")
    with placement:
        notebook["t"].share_memory_()
        child = notebook._children[0]
        child.send(payload, placement, "t[1:] += 1")
        child.receive(placement)
        placement.copy_back()
    assert memory_of(notebook["t"]) != memory_of(array)
    assert notebook["t"].tolist() == array.tolist() == [0, 1, 1, 1]


def test_nothing_is_copied_back_where_memory_cannot_be_written(notebook):
    with mmap.mmap(-1, 4096, prot=mmap.PROT_READ) as constant, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that the buffer can't be written
        notebook["t"] = torch.frombuffer(constant, dtype=torch.uint8)
        assert notebook.run("t[0] = 1; result = int(t[0])", "t") == [1]
        assert notebook["t"][0] == 0
        notebook.namespace.clear()


def test_a_tensor_and_an_array_on_the_same_memory_stay_one(notebook):
    array = notebook["a"] = np.zeros(6)
    notebook["t"] = torch.from_numpy(array)
    big = notebook["s"] = torch.zeros(1_000_000)
    view = notebook["v"] = big.numpy()
    notebook.run("t[rank] = 1; a[rank + 2] = 2; s[5 + rank] = rank + 10", "a", "t", "s", ranks=2)
    assert array.tolist() == notebook["t"].tolist() == [1, 1, 2, 2, 0, 0]
    assert view[5:7].tolist() == big[5:7].tolist() == [10, 11]
    assert np.shares_memory(array, notebook["t"].numpy())
    assert np.shares_memory(view, big.numpy())


def test_overlapping_views_overlap_in_the_worker(notebook):
    base = torch.arange(12.0)
    notebook["head"], notebook["tail"], notebook["grid"] = base[:6], base[3:], base.view(3, 4)
    array = np.arange(12.0)
    notebook["first"], notebook["last"] = array[:6], array[3:]
    notebook.run(
        "head *= 10; assert tail[0] == grid[0, 3] == 30\n"
        "last *= 10; assert first[3] == 30 and first.base is last.base",
        *notebook.namespace,
    )
    assert base[3:6].tolist() == array[3:6].tolist() == [30, 40, 50]


def test_a_snapshot_is_private_to_each_worker(notebook):
    array = notebook["x"] = np.arange(1000.0)
    code = "x[rank] = -1; result = x[:3]"
    results = notebook.run(code, "x", ranks=2, is_shared=lambda _: False)
    assert [result.tolist() for result in results] == [[-1, 1, 2], [0, -1, 2]]
    assert array.tolist() == list(range(1000))


def test_what_is_named_and_a_snapshot_are_two_memories(notebook):
    kept = np.zeros(3)
    notebook["x"], notebook["frame"] = kept, [kept[:]]
    shared = id(kept)
    notebook.run(
        "x[0] = 1; assert frame[0][0] == 0", "x", "frame", is_shared=lambda array: id(array) == shared
    )
    assert kept[0] == 1


def test_thousands_of_small_tensors_share_a_segment(notebook):
    many = notebook["many"] = [torch.full((4,), float(number)) for number in range(3000)]
    _, placement = notebook.place("many")
    with placement:
        assert len(placement.fds) == 1
    notebook.run("for tensor in many: tensor += 1", "many")
    assert all(tensor.tolist() == [number + 1.0] * 4 for number, tensor in enumerate(many))


def test_big_tensors_have_segments_of_their_own(notebook):
    notebook["first"], notebook["second"] = torch.zeros(3_000_000), torch.zeros(3_000_000)
    _, placement = notebook.place("first", "second")
    with placement:
        assert len(placement.fds) == 2


def test_a_segment_goes_when_nothing_lies_in_it_any_more(notebook):
    notebook["x"], notebook["t"] = np.zeros(3), torch.zeros(3)
    notebook.run("", "x", "t")
    assert len(notebook.segments) == 1
    notebook.namespace.clear()
    gc.collect()
    assert len(notebook.segments) == 0


def test_the_old_memory_of_an_array_is_freed_when_it_has_moved(notebook):
    tracemalloc.start()
    try:
        notebook["x"] = np.ones(1_000_000)
        assert tracemalloc.get_traced_memory()[0] > 8_000_000
        _, placement = notebook.place("x")
        with placement:
            assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


def test_if_no_segment_can_be_made_nothing_has_changed(notebook, monkeypatch):
    tensor, notebook["x"] = torch.ones(3), np.ones(3)
    notebook["t"] = tensor
    addresses = tensor.data_ptr(), notebook["x"].__array_interface__["data"][0]

    def fail(_: int) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(notebook.segments, "create", fail)
    with pytest.raises(NoRoom, match="Too many open files"):
        notebook.place("t", "x")
    assert addresses == (tensor.data_ptr(), notebook["x"].__array_interface__["data"][0])


def test_no_memory_needs_no_segment(notebook: Notebook):
    notebook["n"] = {"a": 1}
    _, placement = notebook.place("n")
    with placement:
        assert placement.fds == placement.sizes == tuple(placement.places) == ()


def test_placing_and_mapping_import_neither_torch_nor_numpy():
    rooms = "placing, mapping, parcels, reducers, ownership.names, shared.segments"
    imports = ", ".join(f"nbshm.memory.{room}" for room in rooms.split(", "))
    code = f"import sys, {imports}; assert not {{'torch', 'numpy'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
