"""Looking at objects of other people's classes: what they answer with may raise anything, or never end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MemberDescriptorType
from typing import Any

# As `type` itself tells them: a class may have attributes of the same names.
mro_of: Callable[[type], tuple[type, ...]] = vars(type)["__mro__"].__get__
members_of: Callable[[type], Mapping[str, Any]] = vars(type)["__dict__"].__get__


def attribute(value: Any, name: str) -> Any:
    """Return an attribute, or None where there is none or asking for it raises."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001  # a foreign __getattr__ raises what it likes, RecursionError too
        return None


def slots(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a value has in `__slots__`, of its class and those that this derives from."""
    for base in type(value).__mro__:
        for name, slot in vars(base).items() if "__slots__" in vars(base) else ():
            if isinstance(slot, MemberDescriptorType):
                with contextlib.suppress(AttributeError):  # nothing has been assigned to it
                    yield name, slot.__get__(value, type(value))


def found_at(path: str, names: Mapping[str, Any]) -> Any:
    """Return what stands at a dotted path that begins with one of the names; None where nothing does."""
    root, *rest = path.split(".")
    return followed(names.get(root), rest)


def followed(value: Any, names: Iterable[str]) -> Any:
    """Return the attribute of an attribute ... of a value; None where one is missing."""
    for name in names:
        value = attribute(value, name)
    return value
