from __future__ import annotations

import argparse
import collections
import dataclasses
import functools
import importlib
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nbshm.memory.ownership.kinds import is_array_kind
from nbshm.memory.ownership.reach import reachable


def ours(kind: Any) -> Any:
    """Let a class be one of the notebook's."""
    kind.__module__ = "__main__"
    return kind


def reached(*roots: Any) -> set[int]:
    return {id(array) for array in reachable(roots, is_array_kind)}


def made(kind: Any, *arguments: Any) -> Any:
    value = ours(kind)(*arguments)
    value.extra = np.ones(1)
    return value


A = np.ones(2)


@pytest.mark.parametrize(
    "value",
    [
        made(type("Own", (base,), {}), *arguments)
        for base, arguments in [
            (list, ([A],)),
            (tuple, ([A],)),
            (dict, ({"a": A},)),
            (collections.OrderedDict, ({"a": A},)),
            (collections.deque, ([A],)),
            (collections.UserList, ([A],)),
            (collections.UserDict, ({"a": A},)),
            (collections.ChainMap, ({"a": A},)),
            (Exception, ("text", A)),
            (functools.partial, (print, A)),
        ]
    ],
    ids=lambda value: type(value).__mro__[1].__name__,
)
def test_items_and_attributes_of_notebook_containers_are_reached(value: Any):
    assert reached(value) == {id(A), id(value.extra)}


def test_attributes_of_a_notebook_set_and_array_are_reached():
    numbers = made(type("Own", (set,), {}), [1])
    vector = np.ones(2).view(ours(type("Vector", (np.ndarray,), {})))
    vector.error = np.ones(2)
    assert reached(numbers, vector) == {id(numbers.extra), id(vector), id(vector.error)}


def test_private_slots_dataclasses_and_wrappers_are_reached():
    class Slotted:
        __slots__ = ("__hidden", "unset")

        def __init__(self) -> None:
            self.__hidden = A

    @dataclasses.dataclass(slots=True)
    class Data:
        array: Any

    class Holder:
        def method(self) -> None:
            pass

    holder = ours(Holder)()
    holder.array = A
    for value in [
        ours(Slotted)(),
        Data(A),
        types.SimpleNamespace(a=A),
        argparse.Namespace(a=A),
        types.MappingProxyType({"a": A}),
        holder.method,
    ]:
        assert reached(value) == {id(A)}


def test_what_a_notebook_class_and_its_methods_hold_is_reached():
    first, second, third = np.ones(1), np.ones(1), np.ones(1)

    @ours
    def function(argument=second):
        return argument

    @ours
    def getter(_):
        return getter.array

    getter.array = third
    own = ours(
        type("Own", (), {"held": first, "function": staticmethod(function), "array": property(getter)})
    )
    assert reached([own]) == {id(first), id(second), id(third)}
    assert reached(np.ndarray, types) == set()


def test_what_libraries_hold_is_not_reached():
    class Frame:
        def __init__(self) -> None:
            self.array = A

    class LibraryError(Exception):
        pass

    Frame.__module__ = LibraryError.__module__ = "numpy"
    assert reached(Frame(), LibraryError(A), Frame().__init__) == set()


MODULE = """
import numpy as np
class Own:
    table = np.ones(1)
    def __init__(self, array): self.array = array
class OwnError(Exception): pass
def function(argument=np.ones(1)): pass
"""


@pytest.mark.parametrize(("directory", "is_own"), [("beside", True), ("lib/site-packages", False)])
def test_objects_of_classes_in_files_of_the_persons_are_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str, *, is_own: bool
):
    place, name = tmp_path / directory, f"beside_a_notebook_{is_own}"
    place.mkdir(parents=True)
    (place / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(place)
    module = importlib.import_module(name)
    derived = type("Derived", (module.Own,), {"__module__": "elsewhere"})
    for value in (module.Own(A), module.OwnError(A), derived(A), module.Own(A).__init__):
        assert reached(value) == ({id(A)} if is_own else set())
    assert reached(module.Own, module.function) == set()  # these a worker imports afresh


def test_no_code_of_the_values_runs(monkeypatch: pytest.MonkeyPatch):
    class Unhashable(type):
        __hash__ = None

        def __getattr__(cls, name: str) -> Any:
            raise RuntimeError(name)

    class Odd(metaclass=Unhashable):
        __slots__ = ("__dict__",)

        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

        @property
        def __class__(self) -> Any:
            raise RuntimeError("__class__")

        @property
        def lazy(self) -> Any:
            raise RuntimeError("lazy")

    class OddList(list):
        def __iter__(self) -> Any:
            raise RuntimeError("__iter__")

    class OddDict(collections.UserDict):
        def values(self) -> Any:
            raise RuntimeError("values")

    class OddError(Exception):
        @property
        def args(self) -> Any:
            raise RuntimeError("args")

    def lazy(name: str) -> Any:
        raise RuntimeError(name)

    class WithoutFile:
        __module__ = "without_file"

    class Nowhere:
        __module__ = property(lazy)

    without_file = types.ModuleType("without_file")
    without_file.__getattr__ = lazy
    monkeypatch.setitem(sys.modules, "without_file", without_file)
    assert reached(WithoutFile(), Nowhere()) == set()

    odd = ours(Odd)()
    object.__getattribute__(odd, "__dict__")["array"] = A
    assert reached(odd) == {id(A)}
    assert reached([odd, Odd()]) == {id(A)}
    for value in (ours(OddList)([A]), ours(OddDict)(a=A), ours(OddError)(A)):
        assert reached(value) == {id(A)}
