from __future__ import annotations

import weakref

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from nbshm.memory.ownership.names import NotebookNames


def is_movable(namespace, name="x", *histories):
    return NotebookNames(namespace, *histories).family_of(namespace[name]) is not None


def test_an_array_with_one_name_can_move():
    assert is_movable({"x": np.zeros(3)})


def test_names_views_and_histories_are_all_accounted_for():
    namespace = {"x": np.zeros((3, 3))}
    namespace |= {"view": namespace["x"][1:], "same": namespace["x"]}
    history = {1: namespace["x"], 2: namespace["view"]}
    assert is_movable(namespace, "x", history)
    assert is_movable(namespace, "view", history)
    assert not is_movable(namespace)


def test_an_owner_without_a_name_moves_with_its_views():
    base = np.zeros(6)
    namespace = {"x": base[:3], "y": base[2:]}
    del base
    assert is_movable(namespace)


@pytest.mark.parametrize("kept", [["x", "windows", "part"], ["windows"], ["part"], ["x", "part"]])
def test_windows_over_an_array_move_with_it(kept: list[str]):
    windows = sliding_window_view(np.zeros(6), 3)
    strided = as_strided(windows.base.base, (2, 3), (8, 16))
    made = {"x": windows.base.base, "windows": windows, "strided": strided, "part": windows[::2]}
    namespace = {name: made[name] for name in kept}
    del windows, strided, made
    assert is_movable(namespace, kept[0])
    _held = [namespace[kept[-1]]]
    assert not is_movable(namespace, kept[0])


def test_what_links_a_view_to_its_array_is_to_be_held_by_that_alone():
    namespace = {"x": np.zeros(6)}
    namespace["windows"] = sliding_window_view(namespace["x"], 3)
    _link = namespace["windows"].base
    assert not is_movable(namespace)


def test_an_array_with_a_view_that_reaches_beyond_it_stays():
    array = np.zeros(6)
    assert not is_movable({"x": array, "view": as_strided(array[:3], (9,), (8,))}, "view")


def holders():
    yield "a list", lambda array: [array]
    yield "a view that nobody named", lambda array: [array[1:]]
    yield "a view of a named view", lambda array: [array[1:][1:]]
    yield "a closure", lambda array: lambda: array
    yield "a memoryview", memoryview
    yield "an iterator", iter
    yield "a weak reference", weakref.ref
    yield "a masked array", lambda array: np.ma.array(array, copy=False)
    yield "another class of array", lambda array: array.view(np.recarray)


@pytest.mark.parametrize(("name", "hold"), list(holders()), ids=[name for name, _ in holders()])
def test_an_array_that_something_else_holds_cannot_move(name, hold):
    namespace = {"x": np.zeros(3)}
    held = hold(namespace["x"])
    assert not is_movable(namespace), name
    del held
    assert is_movable(namespace), name


@pytest.mark.parametrize(
    "array",
    [np.frombuffer(bytearray(8)), np.zeros(3, object), np.zeros(0)],
    ids=["foreign", "objects", "empty"],
)
def test_only_plain_memory_of_its_own_can_move(array):
    assert not is_movable({"x": array.view()})


def test_rebinding_leaves_a_name_that_means_something_else_by_now():
    namespace = {"x": np.zeros(3)}
    namespace["y"] = namespace["x"]
    family = NotebookNames(namespace).family_of(namespace["x"])
    namespace["y"] = "other"
    family.rebind({id(namespace["x"]): "moved"})
    assert namespace == {"x": "moved", "y": "other"}


def test_memory_is_named_by_the_nearest_name():
    array = np.zeros(3)
    namespace = {"_": array, "box": {"inner": [array]}, "near": [array], "other": np.zeros(3)}
    names = NotebookNames(namespace)
    address = array.__array_interface__["data"][0]
    assert names.name_of(address, 24) == "_"
    assert NotebookNames({"box": namespace["box"], "near": namespace["near"]}).name_of(address, 24) == "near"
    assert NotebookNames({"other": namespace["other"]}).name_of(address, 24) is None


def test_tensors_without_an_address_are_passed_over():
    array = np.zeros(3)
    jagged = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(1)], layout=torch.jagged)
    names = NotebookNames({"a": jagged, "b": torch.eye(2).to_sparse(), "c": array})
    assert names.name_of(array.__array_interface__["data"][0], 24) == "c"
