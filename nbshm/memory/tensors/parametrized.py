"""How modules travel whose parameters are computed (`torch.nn.utils.parametrizations`): torch pickles none.

Such a module is of a class that torch makes for it alone, with a property for each of these parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch.nn.utils import parametrize

Reduced: TypeAlias = tuple[Any, ...]


def of_class(kind: type) -> Callable[[Any], Reduced] | None:
    """Return the reducer of a class that torch has made for such a module; None for all others."""
    refusing = vars(kind).get("__getstate__")
    return _reduce if getattr(refusing, "__module__", None) == parametrize.__name__ else None


def _reduce(module: torch.nn.Module) -> Reduced:
    return _rebuild, (type(module).__bases__[0],), vars(module), None, None, _restore


def _rebuild(kind: type[torch.nn.Module]) -> torch.nn.Module:
    return kind.__new__(kind)


def _restore(module: torch.nn.Module, attributes: dict[str, Any]) -> None:
    """Give a module its attributes, and do to its class what `register_parametrization` does."""
    vars(module).update(attributes)
    parametrize._inject_new_class(module)  # noqa: SLF001  # no public door: that computes the parameters anew
    for name in attributes["_modules"]["parametrizations"]:
        parametrize._inject_property(module, name)  # noqa: SLF001  # likewise
