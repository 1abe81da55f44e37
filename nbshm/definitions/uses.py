"""A use of a name in a piece of code, as it is handed from a scope to the one around it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One use of a name, with the attributes that are read from it: `scipy.stats.norm` in line 3.

    `declared_global` says that enclosing functions are passed by, by a `global` statement.
    """

    path: str
    line: int
    declared_global: bool = False

    @property
    def name(self) -> str:
        """The name itself, without attributes."""
        return self.path.partition(".")[0]


def dotted_path(node: ast.expr) -> str | None:
    """Return `a.b.c` for an attribute chain that begins at a name, None for any other expression."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(attributes)])


def mangled(uses: Iterable[Use], class_name: str) -> Iterator[Use]:
    """Yield uses made in a class with private names as Python rewrites them: `__x` is `_Class__x`."""
    for use in uses:
        yield replace(use, path=mangled_name(use.name, class_name) + use.path.removeprefix(use.name))


def mangled_name(name: str, class_name: str) -> str:
    """Return a name in a class as Python rewrites it."""
    prefix = class_name.lstrip("_")
    is_private = name.startswith("__") and not name.endswith("__") and prefix
    return f"_{prefix}{name}" if is_private else name
