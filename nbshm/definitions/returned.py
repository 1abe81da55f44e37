"""Functions that a parallel cell defined and gave back: they take what the cell had bound along.

In the notebook they read the notebook's names, like all its functions. But the cell's own names (`rank`, a
constant, a module that it imported) are not there: those that the function reads travel with it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any

from nbshm.definitions.by_value import Reduced, reduce_function
from nbshm.definitions.names import code_names
from nbshm.given_names import IPYTHON_NAMES


class Globals(dict[str, Any]):
    """A function's own globals; the main module's stand behind them, as they are when they are read.

    Python looks names up with `__missing__` where a function's globals are no plain dict.
    """

    __slots__ = ()

    def __missing__(self, name: str) -> Any:
        return vars(sys.modules["__main__"])[name]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in vars(sys.modules["__main__"])


def own_names(function: FunctionType, namespace: Mapping[str, Any], known: Iterable[str]) -> Globals:
    """Return what a function reads in the namespace beyond the known names."""
    beyond = code_names(function.__code__) - IPYTHON_NAMES - set(known)
    return Globals({name: namespace[name] for name in beyond if name in namespace})


def reduce_returned(function: FunctionType, own: Globals) -> Reduced:
    """Return how to rebuild a function that reads these names of its own."""
    if not len(own):
        return reduce_function(function)
    _, (code, name, closure), *rest = reduce_function(function)
    return (rebuild_returned, (code, name, closure, own), *rest)


def rebuild_returned(
    code: CodeType, name: str, closure: tuple[CellType, ...] | None, own: Globals
) -> FunctionType:
    """Make the function as one that has globals of its own."""
    return FunctionType(code, own, name, None, closure)
