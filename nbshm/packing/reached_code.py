"""The notebook's functions and classes that a value leads to: code that may run when the value is used.

Whatever holds them is looked through, other libraries' objects too: a cache, a hook of a module, a loader's
dataset. No code of the values runs here.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

_MOST = 50_000  # objects that one value leads to, of those that may lead further: a tenth of a second
_DEAD_ENDS = (BuiltinFunctionType, CodeType, FrameType, ModuleType, str, bytes, int, float, complex)


def definitions_behind(
    value: Any, namespace: Mapping[str, Any], seen: set[int]
) -> Iterator[FunctionType | type]:
    """Yield the functions of a notebook and its classes that a value is or leads to, the nearest first.

    `seen` are the ids of what was looked at for other values, and is added to.
    """
    waiting, left = deque([value]), _MOST
    while waiting and left:
        found = waiting.popleft()
        if id(found) in seen or found is namespace:
            continue
        seen.add(id(found))
        left -= 1
        if _is_of_notebook(found, namespace):
            yield found
        waiting.extend(_among(_next_to(found, namespace)))


def _is_of_notebook(found: Any, namespace: Mapping[str, Any]) -> bool:
    if type(found) is FunctionType:
        return found.__globals__ is namespace
    return issubclass(type(found), type) and any(
        vars(base).get("__module__") == "__main__" for base in found.__mro__
    )


def _next_to(found: Any, namespace: Mapping[str, Any]) -> list[Any]:
    """Return what an object refers to; of a function, its own, and of a class, all that makes it one."""
    if type(found) is FunctionType:
        return [found.__closure__, found.__defaults__, found.__kwdefaults__, vars(found)]
    if not issubclass(type(found), type):
        return [type(found), *gc.get_referents(found)]
    return [type(found), *found.__mro__, *vars(found).values()] if _is_of_notebook(found, namespace) else []


def _among(parts: list[Any]) -> list[Any]:
    """Return what may lead on: a list may hold a million numbers."""
    dead = {kind for kind in set(map(type, parts)) if issubclass(kind, (*_DEAD_ENDS, type(None)))}
    return [part for part in parts if type(part) not in dead]
