"""Which of the notebook's values a cell writes into: items, attributes, calls of methods that change."""

from __future__ import annotations

import ast
from collections.abc import Iterator

# Methods by which the built-in containers, and frames, are changed in place.
_CHANGING = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "remove", "setdefault", "update"}
)
_INDEXERS = frozenset({"loc", "iloc", "at", "iat"})


def written_names(tree: ast.Module) -> frozenset[str]:
    """Return the names into whose values a cell writes: `x[i] = ...`, `x.loc[i] = ...`, `x.append(...)`."""
    return frozenset(name for node in ast.walk(tree) for name in _written(node))


def _written(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr=indexer), ctx=ast.Store()):
            if indexer in _INDEXERS:
                yield name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in _CHANGING:
            yield name
        case _:
            pass
