"""Walks through the nodes of a cell's text that know which functions these are in."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from nbshm.definitions.bindings import parameter_names, scope_bindings


def outside_definitions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those in it that run when it does: definitions, but not what is in them."""
    yield node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from outside_definitions(child)


def with_locals(node: ast.AST, own: frozenset[str] = frozenset()) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Yield a node and those in it, each with the names that are local to the functions around it."""
    yield node, own
    body: Sequence[ast.AST] = ()
    inner = own
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        inner = _locals(node.args, body, own)
    inside = set(map(id, body))
    for child in ast.iter_child_nodes(node):
        yield from with_locals(child, inner if id(child) in inside else own)


def _locals(arguments: ast.arguments, body: Sequence[ast.AST], around: frozenset[str]) -> frozenset[str]:
    bindings = scope_bindings(body)
    return (around | bindings.own | parameter_names(arguments)) - bindings.declared_global
