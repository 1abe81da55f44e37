"""Which of a cell's writes stay in the ranks: those into values that each rank has a copy of its own of.

What is written into is looked for in the notebook by the steps that the code shows, as far as these go
through the built-in containers and objects of the person's classes; no code of a value runs here. An object
of a library that a cell reads, too, may be meant to be the rank's own.
"""

from __future__ import annotations

import array
import collections
import ctypes
import datetime as dt
import numbers
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any

from nbshm.attributes import attribute, followed
from nbshm.definitions.names import code_names
from nbshm.definitions.steps import Step
from nbshm.definitions.writes import CHANGING_OBJECTS, FITTING, Write
from nbshm.memory.ownership.contents import is_tensor_or_array
from nbshm.memory.ownership.kinds import FILLED_BY_PEOPLE, is_array
from nbshm.own_code import is_module_of_the_persons, library_of, without_loading
from nbshm.own_definitions import is_persons_class
from nbshm.packing.reached_code import definitions_behind
from nbshm.runs.library_objects import is_estimator, is_private_object

_MAPPINGS = frozenset({dict, collections.Counter, collections.defaultdict, collections.OrderedDict})
_SEQUENCES = frozenset({list, tuple, collections.deque})
_OTHERS = frozenset({set, bytearray, array.array})
_CONSTANTS = frozenset({bool, int, float, complex, str, bytes, frozenset})
_TIMES = (dt.date, dt.timedelta)  # pandas' are derived from these
_OF_LIBRARIES = {
    "pandas": ("DataFrame", "Series"),
    "polars": ("DataFrame", "Series"),
    "xarray": ("DataArray", "Dataset"),
}
_IN_MEMORY = frozenset({"MemoryStore", "KVStore"})  # where a zarr array is when it is in no file
_MOST_ITEMS = 100  # of a container are looked at for the one that the code means


def private_writes(
    writes: Iterable[Write], namespace: Mapping[str, Any], sent: Iterable[str] = ()
) -> dict[str, str]:
    """Return into what is written that is private, as the code calls it, and of what kind that is.

    `sent` are the names of the notebook that the cell has; it calls what code they lead to.
    """
    found = dict(filter(None, (_unless_read(write, namespace, sent) for write in writes)))
    return {text: kind for text, kind in found.items() if not _is_in_another(text, found)}


def _unless_read(write: Write, namespace: Mapping[str, Any], sent: Iterable[str]) -> tuple[str, str] | None:
    """Return what is told of a write; not where that is because nothing reads it, and code it calls does."""
    told = _told(write, namespace)
    is_always = told is None or _told(replace(write, is_read=True), namespace) == told
    return told if is_always or write.name not in _names_behind(sent, namespace) else None


def _names_behind(sent: Iterable[str], namespace: Mapping[str, Any]) -> set[str]:
    """Return the global names in code of the notebook that names, or classes of what they name, lead to."""
    seen = set[int]()
    values = [namespace[name] for name in sent if name in namespace]
    code = [value if callable(value) else type(value) for value in values]  # data may be much to look through
    definitions = [each for value in code for each in definitions_behind(value, namespace, seen)]
    functions = (each for each in definitions if isinstance(each, FunctionType))
    return {name for function in functions for name in code_names(function.__code__)}


def _is_in_another(text: str, found: Iterable[str]) -> bool:
    return any(text.startswith((f"{other}[", f"{other}.")) for other in found)


def _told(write: Write, namespace: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return how to call what a write goes into, and its kind, if each rank has its own of it."""
    found = _private(write, namespace)
    if found is None or write.looped is None:
        return found
    values = [namespace.get(write.name)]
    for step in write.steps[: write.looped]:
        values = _follow_all(values, step)
    return write.text, _common(map(_kind_of_container, values)) or found[1]


def _private(write: Write, namespace: Mapping[str, Any]) -> tuple[str, str] | None:
    values, text, in_module = [namespace.get(write.name)], write.name, False
    for step in write.steps:
        parts = _follow_all(values, step)
        whole = _common(_kind_of_whole(value, write) for value in values)
        if whole is not None and not parts:
            return None if write.uses_result else (text, whole)
        if not parts and {type(value) for value in values} == {collections.defaultdict}:
            return text, collections.defaultdict.__name__  # makes the part, in the rank's copy
        in_module = in_module or any(map(_is_local_module, values))
        values, text = parts, write.text
    if in_module:  # imported afresh, with the arrays that it has
        kind = _common(_kind(value, write) or _kind_of_memory(value) for value in values)
        return None if kind is None else (text, kind)
    kind = _common(_kind(value, write) for value in values)
    makes_another = write.uses_result and _common(_kind_of_whole(value, write) for value in values)
    return None if kind is None or makes_another or _updates_memory(write, values) else (text, kind)


def _updates_memory(write: Write, values: Iterable[Any]) -> bool:
    """Tell whether it is an array or a tensor in one of these values that is written to: `x[0] += 1`."""
    return write.updates is not None and any(
        is_tensor_or_array(item) for value in values for item in _follow(value, write.updates)
    )


def _common(kinds: Iterable[str | None]) -> str | None:
    """Return the first of some kinds, if all are private."""
    found = list(kinds)
    return found[0] if found and None not in found else None


def _follow_all(values: Iterable[Any], step: Step) -> list[Any]:
    return [part for value in values for part in _follow(value, step)]


def _follow(value: Any, step: Step) -> Iterator[Any]:
    """Yield what a step may lead to from a value."""
    how, key = step
    kind = type(value)
    is_own = is_persons_class(value if issubclass(kind, type) else kind)
    is_own = is_own or issubclass(kind, FILLED_BY_PEOPLE) or _is_local_module(value)
    attributes = (attribute(value, "__dict__") or {}) if is_own else {}
    match how:
        case "attribute" if key in attributes:
            yield attributes[key]
        case "item" if kind in _MAPPINGS and dict.__contains__(value, key):
            yield dict.__getitem__(value, key)
        case "item" if kind in _SEQUENCES and isinstance(key, int) and key < len(value):
            yield value[key]
        case "any item" if kind in _MAPPINGS:
            yield from list(dict.values(value))[:_MOST_ITEMS]
        case "any item" | "each" if kind in _SEQUENCES:
            yield from list(value)[:_MOST_ITEMS]
        case _:
            pass


def _is_local_module(value: Any) -> bool:
    """Tell whether it is a module of a file of the person's."""
    name = without_loading(value, "__name__")
    return name != "__main__" and is_module_of_the_persons(name)


def _kind(value: Any, write: Write) -> str | None:
    """Name the kind of a value that each rank has a copy of."""
    return _kind_of_whole(value, write) or _kind_of_container(value) or _kind_of_constant(value)


def _kind_of_whole(value: Any, write: Write) -> str | None:
    """Name the kind of a value all of which is private, whatever is in it."""
    kind = type(value)
    if is_array(value):
        return "object array" if value.dtype.hasobject else None
    is_private = any(map(_is_frame_kind, kind.__mro__)) or _is_own_ctypes(value) or _is_zarr_in_memory(value)
    return kind.__name__ if is_private or _changes_object(write, value) else None


def _changes_object(write: Write, value: Any) -> bool:
    """Tell whether a write changes an object of a library, and is all that the cell does with it."""
    if write.is_read or not (write.method is None or write.method in CHANGING_OBJECTS):
        return False
    return is_private_object(value) and (write.method not in FITTING or is_estimator(value))


def _is_frame_kind(kind: type) -> bool:
    is_sparse = str(kind.__module__).startswith("scipy.sparse.")
    return kind.__name__ in _OF_LIBRARIES.get(library_of(kind), ()) or is_sparse


def _is_own_ctypes(value: Any) -> bool:
    """Tell whether it is an array or structure of ctypes in its own memory; multiprocessing's is shared."""
    is_one = issubclass(type(value), (ctypes.Array, ctypes.Structure, ctypes.Union))
    return is_one and bool(value._b_needsfree_)  # documented under this name


def _is_zarr_in_memory(value: Any) -> bool:
    if library_of(type(value)) != "zarr":
        return False
    return type(followed(value, ["store"])).__name__ in _IN_MEMORY


def _kind_of_container(value: Any) -> str | None:
    kind = type(value)
    return kind.__name__ if kind in _MAPPINGS | _SEQUENCES | _OTHERS else None


def _kind_of_constant(value: Any) -> str | None:
    """Name the kind of a value that never changes: what is made of it is another one."""
    kind, numpy = type(value), sys.modules.get("numpy")
    is_scalar = numpy is not None and issubclass(kind, numpy.generic) and not issubclass(kind, numpy.void)
    is_constant = kind in _CONSTANTS or is_scalar or issubclass(kind, (numbers.Number, *_TIMES))
    return kind.__name__ if is_constant else None


def _kind_of_memory(value: Any) -> str | None:
    """Name the kind of an array or a tensor, unless it is a file's."""
    numpy = sys.modules.get("numpy")
    is_of_file = numpy is not None and issubclass(type(value), numpy.memmap)
    return type(value).__name__ if is_tensor_or_array(value) and not is_of_file else None
