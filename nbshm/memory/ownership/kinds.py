"""Which classes are those of arrays and other views of memory, and which hold what people put there."""

from __future__ import annotations

import argparse
import collections
import sys
import types
from typing import Any

# Of the standard library: what their objects hold is what people put there.
FILLED_BY_PEOPLE = (
    argparse.Namespace,
    collections.ChainMap,
    collections.UserDict,
    collections.UserList,
    types.SimpleNamespace,
)


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
