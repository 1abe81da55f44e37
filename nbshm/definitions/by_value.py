"""Functions that have no importable home travel by value: code, defaults, closure and attributes.

cloudpickle rebuilds such a function with globals of its own. In a notebook all functions share one namespace,
the notebook's, and they must share the worker's `__main__` there: one that is rebuilt here reads and writes the
same globals as those that were lifted. Code objects and closure cells are cloudpickle's to carry.
"""

from __future__ import annotations

import sys
from types import CellType, CodeType, FunctionType
from typing import Any, TypeAlias

Reduced: TypeAlias = tuple[Any, ...]


def reduce_function(function: FunctionType) -> Reduced:
    """Return how to rebuild a function whose globals are the notebook's."""
    attributes = {
        "__qualname__": function.__qualname__,
        "__module__": function.__module__,
        "__defaults__": function.__defaults__,
        "__kwdefaults__": function.__kwdefaults__,
        "__annotations__": function.__annotations__,
        "__doc__": function.__doc__,
    }
    closure = function.__closure__
    state = (attributes, function.__dict__, None if closure is None else tuple(map(_contents, closure)))
    cells = None if closure is None else len(closure)
    return rebuild_function, (function.__code__, function.__name__, cells), state, None, None, set_function_state


def rebuild_function(code: CodeType, name: str, cells: int | None) -> FunctionType:
    """Make the function with empty cells; what it holds may refer to the function itself."""
    closure = None if cells is None else tuple(CellType() for _ in range(cells))
    return FunctionType(code, vars(sys.modules["__main__"]), name, None, closure)


def set_function_state(function: FunctionType, state: tuple[Any, ...]) -> None:
    """Fill in what was pickled after the function itself."""
    attributes, dictionary, contents = state
    for name, value in attributes.items():
        setattr(function, name, value)
    function.__dict__.update(dictionary)
    for cell, content in zip(function.__closure__ or (), contents or (), strict=True):
        if content:
            cell.cell_contents = content[0]


def _contents(cell: CellType) -> tuple[Any, ...]:
    """Return the cell's content in a tuple that is empty while the cell is."""
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()
