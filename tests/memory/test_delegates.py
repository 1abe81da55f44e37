"""Objects whose class answers for attributes that they do not have."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest

from nbshm.memory import delegates
from nbshm.memory.buffers import Buffers
from nbshm.memory.reducers import reducers


class Wrapper:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Slotted(Wrapper):
    __slots__ = ("extra",)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value) if name in {"inner", "extra"} else setattr(
            self.inner, name, value
        )


class Attributes(dict):
    __getattr__ = dict.__getitem__


class Settled(Wrapper):
    def __setstate__(self, state: Any) -> None:
        vars(self).update(state)


class Reduced(Wrapper):
    def __reduce__(self) -> Any:
        return Reduced, (self.inner,)


def travelled(value: Any) -> Any:
    class Pickler(pickle.Pickler):
        dispatch_table = reducers(Buffers(), lambda _: True)

    file = io.BytesIO()
    Pickler(file, protocol=5).dump(value)
    return pickle.loads(file.getvalue())


@pytest.mark.parametrize("kind", [Wrapper, Slotted])
def test_one_that_hands_questions_on_arrives_with_its_inner_object(kind: type):
    wrapper = kind([1, 2])
    wrapper.inner.append(wrapper)
    copy = travelled(wrapper)
    assert (type(copy), copy.index(2)) == (kind, 1)
    assert copy.inner[2] is copy


def test_slots_arrive_too():
    slotted = Slotted("inner")
    slotted.extra = 3
    assert travelled(slotted).extra == 3


def test_a_dictionary_with_attributes_keeps_items_and_attributes():
    attributes = Attributes(a=1)
    vars(attributes)["own"] = 2
    copy = travelled(attributes)
    assert (type(copy), dict(copy), vars(copy)) == (Attributes, {"a": 1}, {"own": 2})


@pytest.mark.parametrize("kind", [Settled, Reduced, io.BytesIO])
def test_a_class_with_a_way_of_its_own_or_without_such_a_method_is_left_alone(kind: type):
    assert delegates.of_class(kind) is None


def test_a_librarys_class_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Wrapper, "__module__", "numpy")
    assert delegates.of_class(Wrapper) is None


def test_no_property_is_asked_for_what_is_among_the_attributes():
    class Hiding(Wrapper):
        inner = property(lambda self: vars(self)["inner"], lambda self, inner: vars(self).update(inner=inner))
        fixed = property(lambda self: vars(self)["fixed"])

    hiding = Hiding("inner")
    vars(hiding)["fixed"] = 1
    reduced = delegates.of_class(Hiding)(hiding)
    copy = Hiding.__new__(Hiding)
    reduced[-1](copy, reduced[2])
    assert (copy.inner, copy.fixed) == ("inner", 1)
