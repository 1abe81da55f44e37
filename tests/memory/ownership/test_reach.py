from __future__ import annotations

import collections
import dataclasses
import functools
import types
from typing import Any

import numpy as np
import pytest

from nbshm.memory.ownership.reach import is_array_kind, reachable


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

    assert reached(Frame(), LibraryError(A), Frame().__init__) == set()


def test_no_code_of_the_values_runs():
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

    odd = ours(Odd)()
    object.__getattribute__(odd, "__dict__")["array"] = A
    assert reached(odd) == {id(A)}
    assert reached([odd, Odd()]) == {id(A)}
    for value in (ours(OddList)([A]), ours(OddDict)(a=A), ours(OddError)(A)):
        assert reached(value) == {id(A)}
