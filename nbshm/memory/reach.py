"""Which arrays are the notebook's own: those that its names, plain containers and own objects hold.

Their memory is shared, so that what a worker writes is seen in the notebook. An array inside another
library's object (a frame, an estimator) is not reached here, and travels as a snapshot: such an object is
never half changed behind its back.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

_ATOMS = frozenset({bool, int, float, complex, str, bytes, bytearray, type(None), range, slice})
_SEQUENCES = (list, tuple, set, frozenset, collections.deque, collections.UserList)
_MAPPINGS = (dict, collections.UserDict, collections.ChainMap, types.MappingProxyType)


def reachable(roots: Iterable[Any], wanted: Callable[[Any], bool]) -> Iterator[Any]:
    """Yield each object for which `wanted` holds that can be reached through the notebook's own objects."""
    seen: set[int] = set()
    keep: list[Any] = []  # an attribute may be made by a property: its id must not be taken by another object
    waiting = list(roots)
    while waiting:
        value = waiting.pop()
        if type(value) in _ATOMS or id(value) in seen:
            continue
        seen.add(id(value))
        keep.append(value)
        if wanted(value):
            yield value
        else:
            waiting.extend(_parts(value))


def _parts(value: Any) -> Iterable[Any]:  # noqa: PLR0911  # one for each kind
    if isinstance(value, _SEQUENCES):
        return value if _has_parts(value) else ()
    if isinstance(value, _MAPPINGS):
        return [*value.keys(), *value.values()] if _has_parts(value.values()) else ()
    if isinstance(value, types.SimpleNamespace):
        return vars(value).values()
    if isinstance(value, types.FunctionType):
        return _of_function(value)
    if isinstance(value, functools.partial):
        return (value.func, *value.args, *value.keywords.values())
    if isinstance(value, types.MethodType):
        return (value.__self__, value.__func__)
    return _of_object(value)


def _has_parts(values: Iterable[Any]) -> bool:
    """Tell, at the speed of C, whether a container holds anything but numbers and strings."""
    return not set(map(type, values)) <= _ATOMS


def _of_function(function: types.FunctionType) -> Iterator[Any]:
    if function.__module__ != "__main__":
        return
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from vars(function).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # noqa: PERF203  # the cell is empty: the variable was deleted, or is not bound yet
            continue


def _of_object(value: Any) -> Iterator[Any]:
    """Yield the attributes of an object of a notebook class, of a dataclass, and of what nbshm sends."""
    kind = type(value)
    if isinstance(value, type) or not (_is_own(kind) or dataclasses.is_dataclass(kind)):
        return
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, Mapping):
        yield from attributes.values()
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if hasattr(value, name):
                yield getattr(value, name)


def _is_own(kind: type) -> bool:
    return any(base.__module__ == "__main__" for base in kind.__mro__)
