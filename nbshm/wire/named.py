"""Functions of the other side of the wall by their names: `package.module:function`."""

from __future__ import annotations

import importlib
from typing import Any


def resolve(name: str) -> Any:
    """Return the function of that name, and import its module for it."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def call(name: str, *args: Any) -> Any:
    """Call the function of that name: for pickles from a process that has no use for the module itself."""
    return resolve(name)(*args)
