"""How optimizers of torch and of own classes travel: with all their attributes, as other objects do.

Their own pickling leaves out what is neither default, state nor parameter group: a hook, what a class derived
from one has, the mark by which a scheduler knows that the optimizer comes before it. Other libraries' may
count on that.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any, TypeAlias

from torch.optim import Optimizer

from nbshm.own_definitions import is_own

Reduced: TypeAlias = tuple[Any, ...]

_WAYS = ("__reduce__", "__reduce_ex__")


def of_class(kind: type) -> Callable[[Any], Reduced] | None:
    """Return the reducer of such a class, unless it pickles itself; None for all others."""
    if not issubclass(kind, Optimizer) or kind in copyreg.dispatch_table:
        return None
    is_one = kind.__module__.startswith("torch.optim.") or is_own(kind)
    pickles_itself = any(getattr(kind, name) is not getattr(object, name) for name in _WAYS)
    return _reduce if is_one and not pickles_itself and kind.__getstate__ is Optimizer.__getstate__ else None


def _reduce(optimizer: Optimizer) -> Reduced:
    return copyreg.__newobj__, (type(optimizer),), vars(optimizer)  # type: ignore[attr-defined]  # as object's own reduction
