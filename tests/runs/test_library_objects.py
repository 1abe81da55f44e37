"""Which objects of libraries each rank has a copy of its own of."""

from __future__ import annotations

import configparser
import mmap
import multiprocessing
from collections.abc import MutableMapping
from types import ModuleType

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from nbshm.runs.library_objects import is_estimator, is_private_object


def library_class(name: str, base: type = object, library: str = "sklearn.base") -> type:
    return type(name, (base,), {"__module__": library})


def holding(part: object) -> object:
    held = library_class("Holder")()
    held.inner = [{"part": part}]
    return held


class Own:
    pass


Own.__module__ = "__main__"


class Store(MutableMapping):
    def __getitem__(self, key): ...
    def __setitem__(self, key, value): ...
    def __delitem__(self, key): ...
    def __iter__(self): ...
    def __len__(self): ...


Store.__module__ = "sklearn.base"


@pytest.mark.parametrize(
    "part", [None, np.zeros(2), print, holding, np, "text"], ids=lambda part: type(part).__name__
)
def test_an_object_that_is_in_memory_is_private(part):
    assert is_private_object(holding(part))
    assert is_private_object(np.polynomial.Polynomial([1, 2]))


def test_an_object_in_which_something_is_shared_is_not(tmp_path):
    mapped = np.memmap(tmp_path / "file", mode="w+", shape=2)
    raw = multiprocessing.get_context("spawn").RawArray("d", 2)
    with mmap.mmap(-1, 8) as memory:
        for part in (torch.zeros(2), mapped, Own(), memory, multiprocessing.Value("i"), raw):
            assert not is_private_object(holding(part)), type(part)


@pytest.mark.parametrize(
    "value",
    [
        Store(),  # which may be a file's
        library_class("Cache", library="diskcache.core")(),
        library_class("Dataset", library="h5py._hl.dataset")(),
        configparser.ConfigParser(),
        multiprocessing.Event(),
        Own(),
        torch.optim.SGD([torch.zeros(2, requires_grad=True)]),
        torch.zeros(2).as_subclass(library_class("Picture", torch.Tensor, "torchvision.tv_tensors")),
        ModuleType("settings"),
        [1],
        None,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_may_lead_elsewhere_or_is_no_object_of_a_library_is_not(value):
    assert not is_private_object(value)


def test_of_a_large_object_the_nearest_parts_are_looked_at():
    part = torch.zeros(1)
    for _ in range(11_000):
        part = [part]
    assert is_private_object(holding(part))


def test_an_estimator_is_known_by_its_class():
    assert is_estimator(make_pipeline(LinearRegression()))
    assert not is_estimator(library_class("Trainer", library="lightning")())
