"""Looking at objects of other people's classes: what they answer with may raise anything, or never end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def attribute(value: Any, name: str) -> Any:
    """Return an attribute, or None where there is none or asking for it raises."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001  # a foreign __getattr__ raises what it likes, RecursionError too
        return None


def found_at(path: str, names: Mapping[str, Any]) -> Any:
    """Return what stands at a dotted path that begins with one of the names; None where nothing does."""
    root, *rest = path.split(".")
    return followed(names.get(root), rest)


def followed(value: Any, names: Iterable[str]) -> Any:
    """Return the attribute of an attribute ... of a value; None where one is missing."""
    for name in names:
        value = attribute(value, name)
    return value
