"""The notebook's functions and classes that a value leads to: code that may run when the value is used.

Whatever holds them is looked through, other libraries' objects too: a cache, a hook of a module, a loader's
dataset. No code of the values runs here.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import compress
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from nbshm.own_definitions import is_of_notebook

_MOST = 50_000  # objects that one value leads to, of those that may lead further: a tenth of a second
_DEAD_ENDS = (
    *(BuiltinFunctionType, CodeType, FrameType, ModuleType),
    *(str, bytes, int, float, complex, type(None)),
)


def definitions_behind(
    value: Any, namespace: Mapping[str, Any], seen: set[int]
) -> Iterator[FunctionType | type]:
    """Yield the functions of a notebook and its classes that a value is or leads to.

    `seen` are the ids of what was looked at for other values, and is added to.
    """
    waiting = deque((part, False) for part in _leading_on([value]))
    left = _MOST
    while waiting and left:
        found, is_near = waiting.popleft()
        if id(found) in seen or found is namespace:
            continue
        seen.add(id(found))
        left -= 1
        if _is_of_notebook(found, namespace):
            yield found
            is_near = True  # what it leads to comes before the other items of a long list
        parts = ((part, is_near) for part in _leading_on(_next_to(found, namespace)))
        (waiting.extendleft if is_near else waiting.extend)(parts)


def _is_of_notebook(found: Any, namespace: Mapping[str, Any]) -> bool:
    if type(found) is FunctionType:
        return found.__globals__ is namespace
    return issubclass(type(found), type) and is_of_notebook(found)


def _next_to(found: Any, namespace: Mapping[str, Any]) -> list[Any]:
    """Return what an object refers to; of a function, its own, and of a class, all that makes it one."""
    if type(found) is FunctionType:
        return [found.__closure__, found.__defaults__, found.__kwdefaults__, vars(found)]
    if not issubclass(type(found), type):
        return gc.get_referents(found)
    return [*found.__mro__, *vars(found).values()] if _is_of_notebook(found, namespace) else []


def _leading_on(parts: list[Any]) -> list[Any]:
    """Return the classes of what may lead on, and that itself: a list may hold a million numbers."""
    kinds = {id(kind): kind for kind in map(type, parts)}  # a metaclass may make some that can't be hashed
    leading = {key: kind for key, kind in kinds.items() if not issubclass(kind, _DEAD_ENDS)}
    return [*leading.values(), *compress(parts, map(leading.__contains__, map(id, map(type, parts))))]
