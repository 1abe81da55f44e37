"""How code leads from a name to a part of its value: `x['a'][i].b`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal, TypeAlias

Step: TypeAlias = tuple[Literal["item", "attribute", "any item", "each"], object]
"""How a part is reached: by its key, its name, a key that only running the code would tell, or a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The steps from a name to what the code calls by `text`."""

    name: str
    steps: tuple[Step, ...]
    text: str


def way_to(node: ast.expr) -> Way | None:
    """Return the way to what an expression stands for; None where it does not begin with a name."""
    steps: list[Step] = []
    inner = node
    while not isinstance(inner, ast.Name):
        match inner:
            case ast.Subscript(value=whole, slice=key):
                steps.append(step_to_item(key))
            case ast.Attribute(value=whole, attr=name):
                steps.append(("attribute", name))
            case _:
                return None
        inner = whole
    return Way(name=inner.id, steps=tuple(reversed(steps)), text=ast.unparse(node))


def step_to_item(key: ast.expr) -> Step:
    """Return the step that a subscript is."""
    return ("item", key.value) if isinstance(key, ast.Constant) else ("any item", None)
