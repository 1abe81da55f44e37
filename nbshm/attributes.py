"""Looking at objects of other people's classes: what they answer with may raise anything, or never end."""

from __future__ import annotations

from typing import Any


def attribute(value: Any, name: str) -> Any:
    """Return an attribute, or None where there is none or asking for it raises."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001  # a foreign __getattr__ raises what it likes, RecursionError too
        return None
