"""Looking at objects of other people's classes: what they answer with may raise anything, or never end."""

from __future__ import annotations

from collections.abc import Mapping
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
    found = names.get(root)
    for name in rest:
        found = attribute(found, name)
    return found
