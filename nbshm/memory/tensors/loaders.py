"""How DataLoaders travel: without the workers that one with `persistent_workers` keeps for its next loop."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any, TypeAlias

from torch.utils.data import DataLoader

Reduced: TypeAlias = tuple[Any, ...]

_WAYS = ("__reduce__", "__reduce_ex__", "__getstate__")


def of_class(kind: type) -> Callable[[Any], Reduced] | None:
    """Return the reducer of a class of loaders, unless it pickles itself; None for all others."""
    if not issubclass(kind, DataLoader) or kind in copyreg.dispatch_table:
        return None
    pickles_itself = any(getattr(kind, name, None) is not getattr(object, name, None) for name in _WAYS)
    return None if pickles_itself else _reduce


def _reduce(loader: DataLoader[Any]) -> Reduced:
    state = {**vars(loader), "_iterator": None}  # as before its first loop
    return copyreg.__newobj__, (type(loader),), state  # type: ignore[attr-defined]  # as object's own reduction
