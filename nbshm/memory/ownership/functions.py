"""What functions of the notebook hold, as it is stored: no code of theirs runs."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import Any

from nbshm.own_definitions import is_notebooks_function


def held_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the defaults of a notebook's function by parameter, its closure by variable, its attributes."""
    if not is_notebooks_function(function):
        return
    code, defaults = function.__code__, function.__defaults__ or ()
    first = code.co_argcount - len(defaults)
    yield from zip(code.co_varnames[first:], defaults, strict=False)  # local variables follow
    yield from (function.__kwdefaults__ or {}).items()
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # noqa: PERF203  # it is empty: the variable was deleted, or is not bound yet
            continue
    yield from vars(function).items()
