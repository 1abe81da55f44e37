"""What classes are: those of arrays, the notebook's, the person's. None of their code runs for that."""

from __future__ import annotations

import argparse
import collections
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from nbshm.own_code import is_module_of_the_persons

# Of the standard library: what their objects hold is what people put there.
FILLED_BY_PEOPLE = (
    argparse.Namespace,
    collections.ChainMap,
    collections.UserDict,
    collections.UserList,
    types.SimpleNamespace,
)

# As `type` itself tells them: a class may have attributes of the same names.
mro_of: Callable[[type], tuple[type, ...]] = vars(type)["__mro__"].__get__
members_of: Callable[[type], Mapping[str, Any]] = vars(type)["__dict__"].__get__


def is_array(value: Any) -> bool:
    """Tell whether a value is an array, of any class."""
    return is_array_kind(type(value))


def is_plain_array(value: Any) -> bool:
    """Tell whether a value is an array of numpy's own class, which alone can be moved."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray


def is_array_kind(kind: type) -> bool:
    """Tell whether a class is one of arrays."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(kind, numpy.ndarray)


def is_array_or_view_kind(kind: type) -> bool:
    """Tell whether a class is one of arrays, of rows of structured ones, or of other views of memory."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(kind, (numpy.ndarray, numpy.void, memoryview))


def is_of_notebook(kind: type) -> bool:
    """Tell whether a class is the notebook's, or derived from one that is."""
    return any(members_of(base).get("__module__") == "__main__" for base in mro_of(kind))


def is_own(kind: type) -> bool:
    """Tell whether a class is the person's, of the notebook or a file, or derived from one that is."""
    return any(is_module_of_the_persons(members_of(base).get("__module__")) for base in mro_of(kind))
