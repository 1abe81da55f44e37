"""The notebook's functions and classes that a value leads to."""

from __future__ import annotations

import collections
import functools
import types
from typing import Any

import pytest

from nbshm.packing.reached_code import definitions_behind

NOTEBOOK = """
import functools
class Meta(type):
    def __eq__(self, other): return self is other
class Base:
    def inherited(self): pass
class Own(Base):
    def method(self): pass
    @property
    def value(self): pass
    @value.setter
    def value(self, value): pass
    @functools.cached_property
    def once(self): pass
class Unhashable(metaclass=Meta):
    def method(self): pass
def function(default=lambda: "default"): return lambda: outer
@functools.lru_cache
def cached(): pass
"""


@pytest.fixture
def namespace() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(NOTEBOOK, names)  # noqa: S102  # our own text
    return names


def found(value: Any, namespace: dict[str, Any]) -> set[str]:
    return {each.__qualname__ for each in definitions_behind(value, namespace, set())}


OWN = {"Own", "Base", "Own.method", "Own.value", "Own.once", "Base.inherited"}


@pytest.mark.parametrize(
    "hold",
    [
        lambda own: own,
        lambda own: own(),
        lambda own: [{"a": (own(),)}],
        lambda own: functools.partial(print, own()),
        lambda own: types.SimpleNamespace(a=own()),
        lambda own: collections.ChainMap({"a": own()}),
        lambda own: iter([own()]),
        lambda own: [own() for _ in range(60_000)],
    ],
)
def test_a_class_its_bases_and_all_their_functions_are_found(namespace, hold):
    assert found(hold(namespace["Own"]), namespace) == OWN


def test_functions_are_found_behind_caches_and_with_their_defaults(namespace):
    assert found(namespace["function"], namespace) == {"function", "<lambda>"}
    assert found([namespace["cached"]], namespace) == {"cached"}


def test_a_metaclass_is_found_though_its_classes_have_no_hash(namespace):
    kind = namespace["Unhashable"]
    assert found([kind()], namespace) == {"Unhashable", "Unhashable.method", "Meta", "Meta.__eq__"}


def test_libraries_and_the_notebooks_names_are_not_looked_through(namespace):
    assert found([collections.OrderedDict, pytest, namespace, print], namespace) == set()


def test_a_million_numbers_are_passed_over(namespace):
    assert found([list(range(1_000_000)), namespace["Own"]], namespace) == OWN
