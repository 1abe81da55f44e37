"""How objects travel whose class answers for attributes that they do not have: `__getattr__`.

One that hands the question on to an inner object has no inner object yet while it is rebuilt, when pickle
asks it for `__setstate__`: it asks itself, for ever. With a setter of its own pickle asks nothing.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any, TypeAlias

from nbshm.own_definitions import is_own

Reduced: TypeAlias = tuple[Any, ...]

_WAYS = ("__reduce__", "__reduce_ex__", "__getstate__")
_PROTOCOL = 4


def of_class(kind: type) -> Callable[[Any], Reduced] | None:
    """Return the reducer of such a class of the person's, unless it pickles itself; None for all others."""
    if not hasattr(kind, "__getattr__") or hasattr(kind, "__setstate__") or kind in copyreg.dispatch_table:
        return None
    pickles_itself = any(getattr(kind, name, None) is not getattr(object, name, None) for name in _WAYS)
    return _reduce if is_own(kind) and not pickles_itself else None


def _reduce(value: Any) -> Reduced:
    reduced: Any = object.__reduce_ex__(value, _PROTOCOL)  # a tuple of five
    return (*reduced, _set_state)


def _set_state(value: Any, state: Any) -> None:
    """Do what pickle does where a class has no `__setstate__`; slots have made a pair of the state."""
    attributes, slots = state if type(state) is tuple else (state, None)
    if attributes:
        object.__getattribute__(value, "__dict__").update(attributes)
    for name, content in (slots or {}).items():
        object.__setattr__(value, name, content)
