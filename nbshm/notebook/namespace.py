"""The notebook as a process knows it: in the kernel the thing itself, elsewhere what has travelled there."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nbshm.attributes import attribute
from nbshm.given_names import IPYTHON_NAMES, SHADOWED_NAMES
from nbshm.jobs import LeftOut

if TYPE_CHECKING:
    from nbshm.notebook.lifts import Lifts


@dataclass(kw_only=True)
class Notebook:
    """The notebook's namespace, what is known about its cells, and what did not travel here from there.

    `bound_in_ranks` has the names that parallel cells have bound in their ranks only, by the cell: `In [3]`.
    """

    namespace: dict[str, Any]
    cells: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)
    bound_in_ranks: dict[str, str] = field(default_factory=dict)

    @functools.cached_property
    def lifts(self) -> Lifts:
        """The definitions that have been lifted so far."""
        from nbshm.notebook.lifts import Lifts  # noqa: PLC0415  # most children start no process of their own

        return Lifts()

    def has(self, name: str) -> bool:
        """Tell whether a global is the person's: IPython puts some there."""
        if name not in self.namespace:
            return False
        if name not in SHADOWED_NAMES:
            return name not in IPYTHON_NAMES
        value = self.namespace[name]
        home = attribute(value, "__module__") or attribute(type(value), "__module__")
        return not (type(home) is str and home.startswith("IPython."))
