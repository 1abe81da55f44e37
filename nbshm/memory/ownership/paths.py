"""The paths that lead from names to what these hold, step by step: which name leads to a piece of memory."""

from __future__ import annotations

import contextlib
import gc
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from nbshm.memory.ownership.extents import Range, overlapped

_DEPTH = 5
_DEAD_ENDS = (ModuleType, type, BuiltinFunctionType, str, bytes, int, float)


def names_of(names: Mapping[Any, Any], ranges: Sequence[Range]) -> list[str | None]:
    """Return for each piece of memory the name from which the fewest steps lead to it, IPython's own last.

    The pieces don't overlap. All are looked for in one walk: there may be tens of thousands.
    """
    found: dict[Range, str] = {}
    sought = sorted(ranges)
    for level in itertools.islice(levels(names), _DEPTH):
        for name, value in level:
            for piece in overlapped(sought, value):
                found.setdefault(piece, name)
        if len(found) == len(sought):
            break
    return [found.get(piece) for piece in ranges]


def levels(names: Mapping[Any, Any]) -> Iterator[list[tuple[str, Any]]]:
    """Yield what names lead to in no step, in one step and so on, without end; each part once, by its name.

    What a module of torch has is named by its path (`model.0.weight`), and is there at once.
    """
    own = [(name, names[name]) for name in list(names) if isinstance(name, str)]
    level = sorted([*own, *_of_modules(own)], key=lambda each: (each[0].startswith("_"), "." in each[0]))
    seen: set[int] = set()
    while True:
        yield level
        level = list(_next_level(level, seen))


def steps_from(*values: Any) -> Iterator[Any]:
    """Yield what a few steps lead to from some values, whatever holds it."""
    numbered = {str(number): value for number, value in enumerate(values)}
    for level in itertools.islice(levels(numbered), 1, _DEPTH + 1):
        yield from (part for _, part in level)


def _of_modules(own: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the parameters and buffers of modules, by path."""
    torch = sys.modules.get("torch")
    for name, value in own:
        if torch is None or not issubclass(type(value), torch.nn.Module):
            continue
        with contextlib.suppress(AttributeError):  # its __init__ was never run
            for path, member in (*value.named_parameters(), *value.named_buffers()):
                yield f"{name}.{path}", member


def _next_level(level: Iterable[tuple[str, Any]], seen: set[int]) -> Iterable[tuple[str, Any]]:
    for name, value in level:
        for part in _held_by(value):
            if id(part) not in seen and not issubclass(type(part), _DEAD_ENDS):
                seen.add(id(part))
                yield name, part


def _held_by(value: Any) -> list[Any]:
    """Return what a value refers to; of a function, its own: its globals are all that its module has."""
    if type(value) is not FunctionType:
        return gc.get_referents(value)
    own = (value.__closure__, value.__defaults__, value.__kwdefaults__, vars(value))
    return [part for part in own if part]
