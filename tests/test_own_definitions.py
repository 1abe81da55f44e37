"""Whose functions and classes are: by their code, whatever they say."""

from __future__ import annotations

import enum
import functools
import json
import statistics
import types
from types import FunctionType
from typing import Any

import pytest

from nbshm.definitions.returned import Globals
from nbshm.own_definitions import (
    is_modules_own,
    is_notebooks,
    is_notebooks_class,
    is_of_notebook,
    is_own,
    reads_notebook,
)

NOTEBOOK = """
import functools, json, statistics, types
def plain(): pass
def timed(f):
    @functools.wraps(f)
    def wrapper(*args): return f(*args)
    return wrapper
def logged(cls):
    New = type("New", (cls,), {"note": lambda self: None})
    functools.update_wrapper(New, cls, updated=())
    return New
class Elsewhere:
    __module__ = "mylib"
    @property
    def value(self): pass
class Static:
    __module__ = "mylib"
    @staticmethod
    def value(): pass
class Bare: pass
mean, Decoder = timed(statistics.mean), logged(json.JSONDecoder)
Made = types.new_class("Made", (), {}, lambda body: body.update(put=lambda self: None))
"""


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(NOTEBOOK, names)  # noqa: S102  # our own text
    return names


@pytest.mark.parametrize("name", ["plain", "mean", "Elsewhere", "Static", "Bare", "Decoder", "Made"])
def test_what_the_notebooks_code_has_made_is_the_notebooks(names: dict[str, Any], name: str):
    assert is_notebooks(names[name])
    assert not is_modules_own(names[name])


@pytest.mark.parametrize(
    "value", [statistics.mean, json.JSONDecoder, enum.Enum, object, int, print, "text", json, None]
)
def test_what_a_module_has_is_not(value: object):
    assert not is_notebooks(value)


def test_a_librarys_class_stays_its_own_with_a_method_of_the_notebooks(
    names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(json.JSONDecoder, "decode", names["plain"])
    assert is_modules_own(json.JSONDecoder)
    assert not is_notebooks_class(json.JSONDecoder)
    derived = type("Derived", (json.JSONDecoder,), {"__module__": "json"})
    assert not is_of_notebook(derived)


def test_what_stands_for_a_function_of_the_notebooks_is_too(names: dict[str, Any]):
    cached = functools.lru_cache(names["plain"])
    kept = functools.wraps(names["plain"])(lambda: None)
    assert is_notebooks(cached)
    assert is_notebooks(kept)
    assert not reads_notebook(kept)


def test_a_function_that_a_rank_has_given_back_reads_the_notebook(
    names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.modules", {"__main__": types.ModuleType("__main__")})
    assert reads_notebook(FunctionType(names["plain"].__code__, Globals(rank=1)))
    assert not reads_notebook(FunctionType(names["plain"].__code__, {}))


def test_a_class_is_the_persons_through_those_that_it_derives_from(names: dict[str, Any]):
    derived = type("Derived", (names["Decoder"],), {"__module__": "elsewhere"})
    assert not is_notebooks_class(derived)
    assert is_of_notebook(derived)
    assert is_own(derived)
    assert not is_own(json.JSONDecoder)


def test_pickle_finds_nested_names_and_not_what_has_taken_one():
    assert is_modules_own(json.JSONDecoder.decode)
    assert not is_modules_own(functools.wraps(json.loads)(lambda: None))
    assert not is_modules_own(functools.partial(json.loads))
