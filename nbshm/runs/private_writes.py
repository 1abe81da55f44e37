"""Which of a cell's writes stay in the ranks: those into values that each rank has a copy of its own of.

What is written into is looked for in the notebook by the steps that the code shows, as far as these go
through the built-in containers and objects of the person's classes; no code of a value runs here.
"""

from __future__ import annotations

import array
import collections
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from nbshm.definitions.writes import Step, Write
from nbshm.own_code import is_module_of_the_persons

_MAPPINGS = frozenset({dict, collections.Counter, collections.defaultdict, collections.OrderedDict})
_SEQUENCES = frozenset({list, tuple, collections.deque})
_OTHERS = frozenset({set, bytearray, array.array})
_CONSTANTS = frozenset({bool, int, float, complex, str, bytes, frozenset})
_OF_LIBRARIES = {"pandas": ("DataFrame", "Series"), "xarray": ("DataArray", "Dataset")}
_MOST_ITEMS = 100  # of a container are looked at for the one that the code means


def private_writes(writes: Iterable[Write], namespace: Mapping[str, Any]) -> dict[str, str]:
    """Return into what is written that is private, as the code calls it, and of what kind that is."""
    found = dict(found for write in writes for found in _private(write, namespace))
    return {text: kind for text, kind in found.items() if not _is_in_another(text, found)}


def _is_in_another(text: str, found: Iterable[str]) -> bool:
    return any(text.startswith((f"{other}[", f"{other}.")) for other in found)


def _private(write: Write, namespace: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield how to call what a write goes into, and its kind, if each rank has its own of it."""
    values, text = [namespace.get(write.name)], write.name
    for step in write.steps:
        whole = _common(map(_kind_of_whole, values))
        if whole is not None:
            yield text, whole
            return
        parts = [part for value in values for part in _follow(value, step)]
        if not parts and {type(value) for value in values} == {collections.defaultdict}:
            yield text, collections.defaultdict.__name__  # makes the part, in the rank's copy
            return
        values, text = parts, write.text
    kind = _common(
        _kind_of_whole(value) or _kind_of_container(value) or _kind_of_constant(value) for value in values
    )
    if kind is not None and not _updates_memory(write, values):
        yield text, kind


def _updates_memory(write: Write, values: Iterable[Any]) -> bool:
    """Tell whether it is an array or a tensor in one of these values that is written to: `x[0] += 1`."""
    return write.updates is not None and any(
        _is_memory(item) for value in values for item in _follow(value, write.updates)
    )


def _common(kinds: Iterable[str | None]) -> str | None:
    """Return the first of some kinds, if all are private."""
    found = list(kinds)
    return found[0] if found and None not in found else None


def _follow(value: Any, step: Step) -> Iterator[Any]:
    """Yield what a step may lead to from a value."""
    how, key = step
    kind = type(value)
    home = _home(value if issubclass(kind, type) else kind)
    is_own = is_module_of_the_persons(home) or kind is SimpleNamespace
    attributes = getattr(value, "__dict__", {}) if is_own else {}
    match how:
        case "attribute" if key in attributes:
            yield attributes[key]
        case "item" if kind in _MAPPINGS and dict.__contains__(value, key):
            yield dict.__getitem__(value, key)
        case "item" if kind in _SEQUENCES and isinstance(key, int) and key < len(value):
            yield value[key]
        case "any item" if kind in _MAPPINGS:
            yield from list(dict.values(value))[:_MOST_ITEMS]
        case "any item" if kind in _SEQUENCES:
            yield from list(value)[:_MOST_ITEMS]
        case _:
            pass


def _kind_of_whole(value: Any) -> str | None:
    """Name the kind of a value all of which is private, whatever is in it."""
    kind = type(value)
    if kind.__name__ in _OF_LIBRARIES.get(_home(kind).partition(".")[0], ()):
        return kind.__name__
    if _home(kind).startswith("scipy.sparse."):
        return kind.__name__
    numpy = sys.modules.get("numpy")
    is_array = numpy is not None and issubclass(kind, numpy.ndarray)
    return "object array" if is_array and value.dtype.hasobject else None


def _home(kind: type) -> str:
    return str(kind.__module__)  # a class may have anything there


def _kind_of_container(value: Any) -> str | None:
    kind = type(value)
    return kind.__name__ if kind in _MAPPINGS | _SEQUENCES | _OTHERS else None


def _kind_of_constant(value: Any) -> str | None:
    """Name the kind of a value that never changes: what is made of it is another one."""
    kind = type(value)
    return kind.__name__ if kind in _CONSTANTS else None


def _is_memory(value: Any) -> bool:
    """Tell whether it is an array or a tensor, which `+=` changes in place."""
    kinds = [
        getattr(sys.modules[library], name)
        for library, name in (("numpy", "ndarray"), ("torch", "Tensor"))
        if library in sys.modules
    ]
    return issubclass(type(value), tuple(kinds))
