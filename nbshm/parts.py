"""What values consist of, each part with how it is reached: by the expression that people write."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections import UserDict, deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeAlias

from nbshm.attributes import attribute, slots

Place: TypeAlias = "tuple[str, Any]"
"""A value, behind the path to it."""

_MOST = 20_000  # objects are looked at
# By id, because a metaclass may make classes that can't be hashed.
_ATOMS = frozenset(map(id, (bool, int, float, complex, str, bytes, type(None))))
_OF_MODULES = frozenset({"._modules", "._parameters", "._buffers"})


def steps_to(part: Any, value: Any) -> str:
    """Return how a part is reached from a value (`['a'][0].b`); nothing where no way is found."""
    return next((steps for steps, found in places({"": value}) if found is part), "")


def parts(value: Any) -> Iterator[Place]:
    """Yield the parts of a value with how each is reached from it.

    What a value is, its type says: `__class__` may say anything. Where a builtin type can be asked for the
    parts, a subclass that has ways of its own is not.
    """
    kind = type(value)
    if issubclass(kind, dict):
        yield from ((f"[{key!r}]", part) for key, part in dict.items(value))
    elif issubclass(kind, MappingProxyType):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif issubclass(kind, UserDict):
        yield from ((f"[{key!r}]", part) for key, part in (attribute(value, "data") or {}).items())
    elif issubclass(kind, (list, tuple)):
        items = list.__iter__(value) if issubclass(kind, list) else tuple.__iter__(value)
        yield from ((f"[{index}]", part) for index, part in enumerate(items))
    elif issubclass(kind, (set, frozenset)):
        members = set.__iter__(value) if issubclass(kind, set) else frozenset.__iter__(value)
        yield from (("{...}", part) for part in members)
    elif dataclasses.is_dataclass(kind):
        yield from ((f".{item.name}", attribute(value, item.name)) for item in dataclasses.fields(kind))
    torch = sys.modules.get("torch")
    if torch is not None and issubclass(kind, torch.nn.Module):
        yield from _parts_of_module(value, torch.nn)
        yield from ((step, part) for step, part in _inner(value) if step not in _OF_MODULES)
    else:
        yield from _inner(value)


def places(values: Mapping[str, Any], parts_of: Callable[[Any], Iterator[Place]] = parts) -> Iterator[Place]:
    """Yield what names lead to, each object once, those behind the fewest steps first.

    After some thousands of objects the rest is left, and so is what a foreign class raises instead of parts.
    """
    waiting, seen = deque(values.items()), dict[int, Any]()
    while waiting and len(seen) < _MOST:
        path, value = waiting.popleft()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        yield path, value
        inner = ((path + step, part) for step, part in parts_of(value) if id(type(part)) not in _ATOMS)
        with contextlib.suppress(Exception):
            waiting.extend(islice(inner, _MOST - len(waiting)))


def _parts_of_module(module: Any, nn: Any) -> Iterator[Place]:
    """Yield what a module of torch is made of, by the expressions that people write."""
    kind, own = type(module), vars(module)
    for name, child in own.get("_modules", {}).items():
        if issubclass(kind, (nn.Sequential, nn.ModuleList)):
            yield f"[{name}]", child
        elif issubclass(kind, nn.ModuleDict):
            yield f"[{name!r}]", child
        else:
            yield f".{name}", child
    for name, tensor in (*own.get("_parameters", {}).items(), *own.get("_buffers", {}).items()):
        yield f".{name}", tensor


def _inner(value: Any) -> Iterator[Place]:
    for cell in attribute(value, "__closure__") or ():
        yield " (its closure)", attribute(cell, "cell_contents")  # an empty one raises
    yield from ((" (a default)", default) for default in attribute(value, "__defaults__") or ())
    if callable(value) and not issubclass(type(value), type):
        for name in ("func", "args", "keywords", "__self__"):
            part = attribute(value, name)
            if part is not None:
                yield f".{name}", part
    dictionary = attribute(value, "__dict__")
    if issubclass(type(dictionary), dict):
        yield from ((f".{key}", part) for key, part in dictionary.items())
    yield from ((f".{name}", part) for name, part in slots(value))
