"""What a piece of code needs, and the notebook that has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nbshm.attributes import attribute
from nbshm.jobs import LeftOut
from nbshm.packing.lifts import Lifts

_IPYTHON_NAMES = frozenset({"In", "Out", "_ih", "_oh", "_dh", "__builtins__"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a piece of code needs: names, with where each is used; dotted names; names that may be left out.

    `all_optional`: whatever can't travel may be left out, also what others read. `extra` are values that are
    bound to names without being the notebook's values of these names.
    """

    names: Mapping[str, str]
    attributes: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    all_optional: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Notebook:
    """The notebook's namespace, what is known about its cells, and what did not travel here from there.

    `lifts` are the definitions that have been lifted so far.
    """

    namespace: dict[str, Any]
    cells: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)
    lifts: Lifts = field(default_factory=Lifts)

    def has(self, name: str) -> bool:
        """Tell whether a global is the person's: IPython puts some there, which a person may shadow."""
        if name not in self.namespace or name in _IPYTHON_NAMES:
            return False
        value = self.namespace[name]
        home = attribute(value, "__module__") or attribute(type(value), "__module__")
        return not (type(home) is str and home.startswith("IPython."))
