"""What workers give back (`parcels.py` there, `homecoming.py` here)."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from memory_notebook import Notebook, in_segment, open_descriptors

from nbshm.errors import NoRoom
from nbshm.memory import homecoming


def test_the_notebooks_own_tensor_comes_back_as_the_same_storage(notebook: Notebook):
    moved, held = torch.zeros(5), torch.zeros(5)
    view = held.numpy()
    notebook["moved"], notebook["held"] = moved, held
    ((first, second, part),) = notebook.run("held[1] = 3; result = moved, held, held[1:]", "moved", "held")
    assert first.untyped_storage() is moved.untyped_storage()
    assert second.untyped_storage() is held.untyped_storage() is part.untyped_storage()
    part[0] = 8
    assert view[1] == held[1] == second[1] == 8


def test_the_notebooks_own_array_comes_back_as_the_same_memory(notebook: Notebook):
    mirrored = np.zeros(4)
    keep = [mirrored]
    notebook["moved"], notebook["mirrored"] = np.zeros((3, 3)), mirrored
    ((first, second),) = notebook.run("result = moved[::-1], mirrored[1:]", "moved", "mirrored")
    assert np.shares_memory(first, notebook["moved"])
    assert np.shares_memory(second, mirrored)
    assert first.strides == (-24, 8)
    second[0] = 5
    assert keep[0][1] == 5


def test_memory_that_stayed_is_kept_alive_by_a_result_over_it(notebook: Notebook):
    notebook["a"] = np.arange(100_000.0)
    keep = [notebook["a"]]
    (result,) = notebook.run("result = a[5:]", "a")
    notebook.namespace.clear()
    keep.clear()
    gc.collect()
    assert result.tolist() == list(range(5, 100_000))


def test_new_memory_is_the_notebooks_and_keeps_overlapping(notebook: Notebook):
    notebook["n"] = 1
    ((tensor, array, head, tail),) = notebook.run(
        "base = np.arange(6.0); result = torch.ones(3), np.arange(4)[::-1], base[:4], base[2:]", "n"
    )
    assert tensor.tolist() == [1, 1, 1]
    assert array.tolist() == [3, 2, 1, 0]
    head[2] = 9
    assert tail[0] == 9
    tensor += 1
    array[0] = 7


def test_a_big_result_is_a_segment_and_a_small_one_keeps_no_descriptor(notebook: Notebook):
    notebook["n"] = 1
    before = open_descriptors()
    (small,) = notebook.run("result = np.zeros(10)", "n")
    assert open_descriptors() == before
    (big,) = notebook.run("result = np.ones(1_000_000)", "n")
    assert in_segment(notebook, big)
    assert not in_segment(notebook, small)
    notebook["big"] = big
    del big
    notebook.run("big += 1", "big")
    assert notebook["big"].sum() == 2_000_000


def test_where_descriptors_are_few_big_results_keep_none_either(notebook: Notebook, monkeypatch):
    monkeypatch.setattr(homecoming, "are_fewer_left_than", lambda _: True)
    monkeypatch.setattr(homecoming, "allow_descriptors", lambda _: 10)
    notebook["n"] = 1
    before = open_descriptors()
    (big,) = notebook.run("result = np.ones(1_000_000)", "n")
    assert open_descriptors() == before
    assert big.sum() == 1_000_000


def test_each_rank_gives_back_its_own(notebook: Notebook):
    notebook["n"] = 1
    first, second = notebook.run("result = torch.full((300_000,), float(rank))", "n", ranks=2)
    assert (first.sum(), second.sum()) == (0, 300_000)


def test_what_a_snapshot_became_is_copied(notebook: Notebook):
    array = notebook["x"] = np.zeros(3)
    (result,) = notebook.run("x += 1; result = x", "x", is_shared=lambda _: False)
    assert result.tolist() == [1, 1, 1]
    assert array.tolist() == [0, 0, 0]


def test_a_thousand_results_refer_to_a_thousand_tensors(notebook: Notebook):
    many = notebook["many"] = [torch.zeros(2) for _ in range(1000)]
    (result,) = notebook.run("result = many[::-1]", "many")
    assert all(
        got.untyped_storage() is sent.untyped_storage() for got, sent in zip(result, many[::-1], strict=True)
    )


def test_read_only_stays_read_only(notebook: Notebook):
    notebook["n"] = 1
    (result,) = notebook.run("result = np.arange(3); result.flags.writeable = False", "n")
    assert not result.flags.writeable


def test_descriptors_of_a_parcel_are_closed_when_it_cannot_be_received(notebook: Notebook, monkeypatch):
    notebook["n"] = 1
    before = open_descriptors()

    def fail(_: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(notebook.segments, "add", fail)
    with pytest.raises(NoRoom, match=r"no room for a result: 7\.6 MiB needed"):
        notebook.run("result = np.ones(1_000_000)", "n")
    gc.collect()
    assert open_descriptors() == before
