"""Which of the notebook's values a cell writes into: items, attributes, calls of methods that change.

And to which of its names and attributes it adds: `total += x`, `total = total + x`, `box.total += x`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

# Methods by which the built-in containers are changed in place.
_CHANGING = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "remove", "setdefault", "update"}
)
_INDEXERS = frozenset({"loc", "iloc", "at", "iat"})

Step: TypeAlias = tuple[Literal["item", "attribute", "any item"], object]
"""How a part is reached: by its key, by its name, or by a key that only running the code would tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write into what a name leads to by some steps; `text` is how the code calls that.

    With `binds` the name itself is bound to something made of its value.

    `updates` leads on to the item that is updated in place, if it can be: by `+=`, not by `=`.
    """

    name: str
    steps: tuple[Step, ...]
    text: str
    updates: Step | None = None
    binds: bool = False


def writes(tree: ast.Module) -> list[Write]:
    """Return the writes of a cell: `x[i] = ...`, `x.loc[i] = ...`, `x.a.append(...)`, `x.a += ...`."""
    nodes = list(ast.walk(tree))
    updated = {id(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
    into = [write for node in nodes for write in _writes(node, is_updated=id(node) in updated)]
    return [*into, *_added_to(tree)]


def _added_to(node: ast.AST) -> Iterator[Write]:
    """Yield names and attributes that are bound to something made of their value, outside of definitions."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
            return
        case ast.AugAssign(target=ast.Name(id=name)):
            yield Write(name=name, steps=(), text=name, binds=True)
        case ast.AugAssign(target=ast.Attribute() as target):
            yield from _into(target)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(left=left, right=right)):
            if any(isinstance(side, ast.Name) and side.id == name for side in (left, right)):
                yield Write(name=name, steps=(), text=name, binds=True)
    for child in ast.iter_child_nodes(node):
        yield from _added_to(child)


def _writes(node: ast.AST, *, is_updated: bool) -> Iterator[Write]:
    match node:
        case ast.Subscript(value=into, slice=key, ctx=ast.Store() | ast.Del()):
            yield from _into(_without_indexer(into), updates=_item(key) if is_updated else None)
        case ast.Call(func=ast.Attribute(value=into, attr=method), keywords=keywords):
            if method in _CHANGING or any(map(_says_in_place, keywords)):
                yield from _into(into)


def _into(node: ast.expr, *, updates: Step | None = None) -> Iterator[Write]:
    steps: list[Step] = []
    inner = node
    while not isinstance(inner, ast.Name):
        match inner:
            case ast.Subscript(value=whole, slice=key):
                steps.append(_item(key))
            case ast.Attribute(value=whole, attr=name):
                steps.append(("attribute", name))
            case _:
                return
        inner = whole
    yield Write(name=inner.id, steps=tuple(reversed(steps)), text=ast.unparse(node), updates=updates)


def _item(key: ast.expr) -> Step:
    return ("item", key.value) if isinstance(key, ast.Constant) else ("any item", None)


def _without_indexer(into: ast.expr) -> ast.expr:
    """Return the frame in `frame.loc`."""
    return into.value if isinstance(into, ast.Attribute) and into.attr in _INDEXERS else into


def _says_in_place(keyword: ast.keyword) -> bool:
    match keyword:
        case ast.keyword(arg="inplace", value=ast.Constant(value=True)):
            return True
    return False
