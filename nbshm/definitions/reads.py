"""Which names a cell reads otherwise than to write into what they stand for."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping


def read_elsewhere(tree: ast.Module, changed: Mapping[int, Collection[str]]) -> frozenset[str]:
    """Return the names that some statement reads which writes into nothing of theirs.

    `changed` has the names of those nodes, by id, that write into something. What a statement reads and
    writes into goes on with it: `g.nodes[n]['x'] = f(g, n)`, `for n in g: g.nodes[n]['x'] = 1`.
    """
    found: set[str] = set()
    for statement in ast.walk(tree):
        if isinstance(statement, ast.stmt):
            names = {name for node in ast.walk(statement) for name in changed.get(id(node), ())}
            found |= set(_read_by(statement)) - names
    return frozenset(found)


def _read_by(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that the code of a statement reads, without the statements in it."""
    for node in _outside_inner_statements(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                yield name
            case _:
                pass


def _outside_inner_statements(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.stmt) or _is_length(child)):
            yield child
            yield from _outside_inner_statements(child)


def _is_length(node: ast.AST) -> bool:
    """Tell whether it is `len(x)`, which reads nothing of what is in that."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name()]):
            return True
    return False
