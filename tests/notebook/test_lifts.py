"""A definition is lifted again when it has changed, and only then."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest

from nbshm.definitions.lifting import lift
from nbshm.notebook.lifts import Lifts

CELL = "<cell that is lifted>"
SOURCE = '''
import contextlib, enum, functools
bound = 2
def double(x, times=2):
    """Say it twice."""
    return x * times
class Box:
    size = 3
    def get(self, key=None):
        return self.size
    @staticmethod
    def make(): return Box()
    class Part:
        def weigh(self): return 1
@contextlib.contextmanager
def decorated(*args, limit=None): yield double(*args)
def other(self): return 4
def annotated(x: bound): return x
class Colour(enum.Enum):
    RED = 1
class Plugins:
    registry = {}
@functools.singledispatch
def generic(x): return x
'''


@pytest.fixture
def namespace() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    linecache.cache[CELL] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), CELL)
    exec(compile(SOURCE, CELL, "exec"), names)  # noqa: S102
    return names


@pytest.mark.parametrize("name", ["double", "Box", "decorated", "annotated"])
def test_what_has_not_changed_is_lifted_once(namespace: dict[str, Any], name: str) -> None:
    lifts = Lifts()
    first = lifts.lift(name, namespace[name], namespace, {CELL: 1})
    assert lifts.lift(name, namespace[name], namespace, {CELL: 1}) is first


CHANGES: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
    ("double", lambda names: setattr(names["double"], "__defaults__", (5,))),
    ("double", lambda names: setattr(names["double"], "__defaults__", ([],))),
    ("double", lambda names: setattr(names["double"], "note", "set later")),
    ("double", lambda names: setattr(names["double"], "__doc__", "Say it.")),
    ("double", lambda names: setattr(names["double"], "__code__", names["other"].__code__)),
    ("decorated", lambda names: names["decorated"].__wrapped__.__kwdefaults__.update(limit=5)),
    ("decorated", lambda names: names.update(contextlib=names["other"])),
    ("Box", lambda names: setattr(names["Box"], "get", names["other"])),
    ("Box", lambda names: setattr(names["Box"], "size", 4)),
    ("Box", lambda names: setattr(names["Box"], "late", 1)),
    ("Box", lambda names: delattr(names["Box"], "make")),
    ("Box", lambda names: setattr(names["Box"].get, "__defaults__", (1,))),
    ("Box", lambda names: setattr(names["Box"].make, "__code__", names["other"].__code__)),
    ("Colour", lambda names: setattr(names["Colour"].RED, "late", 1)),
]


@pytest.mark.parametrize(("name", "change"), CHANGES)
def test_what_has_changed_is_lifted_again(
    namespace: dict[str, Any], name: str, change: Callable[[dict[str, Any]], Any]
) -> None:
    lifts = Lifts()
    before = lifts.lift(name, namespace[name], namespace, {CELL: 1})
    change(namespace)
    after = lifts.lift(name, namespace[name], namespace, {CELL: 1})
    assert after == lift(name, namespace[name], namespace, {CELL: 1})
    assert after != before


def test_a_definition_with_a_value_of_its_own_is_not_kept_here(namespace: dict[str, Any]) -> None:
    lifts = Lifts()
    namespace["double"].__defaults__ = ([1, 2],)
    first = lifts.lift("double", namespace["double"], namespace, {CELL: 1})
    assert lifts.lift("double", namespace["double"], namespace, {CELL: 1}) is not first


def test_a_class_with_a_registry_is_lifted_and_a_generic_function_is_not(
    namespace: dict[str, Any],
) -> None:
    both = {name: lift(name, namespace[name], namespace, {CELL: 1}) for name in ("Plugins", "generic")}
    assert [name for name, lifted in both.items() if lifted is not None] == ["Plugins"]
