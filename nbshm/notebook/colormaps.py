"""Colormaps that the notebook, or a library there (seaborn), has registered, for its workers."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import cloudpickle


def registered_colormaps(matplotlib: ModuleType) -> dict[str, bytes]:
    """Return those that matplotlib does not come with, pickled, by name; one that can't be stays here."""
    registry = getattr(matplotlib, "colormaps", {})  # it came with matplotlib 3.5
    own = getattr(registry, "_builtin_cmaps", registry)  # nothing public tells
    pickled = {}
    for name in registry.keys() - set(own):
        with contextlib.suppress(
            Exception
        ):  # a subclass's or a function's own pickling; it may not be needed
            pickled[name] = cloudpickle.dumps(registry[name])
    return pickled


def register_colormaps(matplotlib: ModuleType, pickled: Mapping[str, bytes]) -> None:
    """Register here what was registered elsewhere; code of this process may still register the same."""
    new = {name: colormap for name, colormap in pickled.items() if name not in matplotlib.colormaps}
    for name, colormap in new.items():
        matplotlib.colormaps.register(cloudpickle.loads(colormap), name=name)
    if new:
        _make_way(matplotlib.colormaps, set(new))


def _make_way(registry: Any, names: set[str]) -> None:
    """Let each of the names be registered once more, as if it were not there yet.

    Else the libraries and local modules that have registered them in the notebook could not be imported.
    """
    register = registry.register

    def register_anew(cmap: Any, *, name: str | None = None, force: bool = False) -> None:
        known_as = name or cmap.name
        if known_as in names:
            names.remove(known_as)
            registry.unregister(known_as)
        register(cmap, name=name, force=force)

    registry.register = register_anew
