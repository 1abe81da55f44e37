"""Which code and which modules are the person's."""

from __future__ import annotations

import json
import sys
import types

import numpy as np
import pytest

import nbshm
from nbshm.own_code import is_module_of_the_persons, is_the_persons


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        (__file__, True),
        ("/home/me/simulation.py", True),
        (nbshm.__file__, False),
        (json.__file__, False),
        (np.__file__, False),
        ("/home/me/.local/lib/python3.11/site-packages/pandas/core/frame.py", False),
        ("/usr/lib/python3/dist-packages/pandas/core/frame.py", False),
        ("<frozen importlib._bootstrap>", False),
    ],
)
def test_what_is_installed_anywhere_is_not_the_persons(filename: str, *, expected: bool):
    assert is_the_persons(filename) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("__main__", True),
        (__name__, True),
        ("json", False),
        ("builtins", False),
        ("nbshm.sharing", False),
        ("not.imported", False),
        (None, False),
        ([], False),
    ],
)
def test_a_module_is_the_persons_by_its_file(name: object, *, expected: bool):
    assert is_module_of_the_persons(name) is expected


def test_a_module_is_not_asked_for_its_file(monkeypatch: pytest.MonkeyPatch):
    def __getattr__(name: str) -> str:  # noqa: N807  # it is a module's
        raise RuntimeError(name)

    module = types.ModuleType("without_a_file")
    module.__getattr__ = __getattr__
    monkeypatch.setitem(sys.modules, "without_a_file", module)
    monkeypatch.setitem(sys.modules, "no_module", object())
    assert not is_module_of_the_persons("without_a_file")
    assert not is_module_of_the_persons("no_module")
