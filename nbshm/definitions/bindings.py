"""Which names a block of code binds in its own scope, from its syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """The names that one scope binds, apart from where it declares them to live.

    `own` are bound in the scope itself, `to_global` are bound under a `global` declaration;
    `declared_global` and `declared_nonlocal` hold all declared names, bound or not.
    """

    own: frozenset[str]
    to_global: frozenset[str]
    declared_global: frozenset[str]
    declared_nonlocal: frozenset[str]


def scope_bindings(nodes: Iterable[ast.AST]) -> Bindings:
    """Collect what `nodes`, the statements of one scope, bind; nested scopes are not entered."""
    collector = _Collector()
    for node in nodes:
        collector.visit(node)
    own = collector.bound - collector.declared_global - collector.declared_nonlocal
    return Bindings(
        own=frozenset(own),
        to_global=frozenset(collector.bound & collector.declared_global),
        declared_global=frozenset(collector.declared_global),
        declared_nonlocal=frozenset(collector.declared_nonlocal),
    )


def all_bindings(tree: ast.Module) -> frozenset[str]:
    """Collect every module-level name that `tree` can bind, also by `global` in nested scopes."""
    nested = (node for node in ast.walk(tree) if isinstance(node, (*_FUNCTIONS, ast.ClassDef)))
    by_global = (scope_bindings(node.body).to_global for node in nested)
    # A `global` statement at module level is legal and says nothing new.
    at_top = scope_bindings(tree.body)
    return at_top.own.union(at_top.to_global, *by_global)


def parameter_names(arguments: ast.arguments) -> frozenset[str]:
    """Return the names of all parameters."""
    return frozenset(parameter.arg for parameter in parameters(arguments))


def parameters(arguments: ast.arguments) -> Iterator[ast.arg]:
    """Yield all parameters in the order in which their annotations are evaluated."""
    yield from (*arguments.posonlyargs, *arguments.args)
    if arguments.vararg:
        yield arguments.vararg
    yield from arguments.kwonlyargs
    if arguments.kwarg:
        yield arguments.kwarg


def defaults(arguments: ast.arguments) -> list[ast.expr]:
    """Return the parameters' default expressions, in the order in which they are evaluated."""
    return [*arguments.defaults, *(default for default in arguments.kw_defaults if default)]


def type_parameters(node: ast.AST) -> list[ast.AST]:
    """Return the parameters in square brackets of a generic function, class or alias (Python 3.12)."""
    return list(getattr(node, "type_params", ()))


def type_parameter_names(node: ast.AST) -> frozenset[str]:
    """Return the names of the type parameters of `node`."""
    # The node classes exist from Python 3.12 on only, so their one common attribute is read by its name.
    return frozenset(getattr(parameter, "name", "") for parameter in type_parameters(node))


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class _Collector(ast.NodeVisitor):
    """Visits one scope; of a nested one it sees only what the surrounding scope evaluates."""

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.declared_global: set[str] = set()
        self.declared_nonlocal: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)

    def visit_Global(self, node: ast.Global) -> None:
        self.declared_global.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.declared_nonlocal.update(node.names)

    def visit_alias(self, node: ast.alias) -> None:
        if node.name != "*":
            self.bound.add(imported_name(node))

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self._add(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self._add(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self._add(node.rest)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        # The target is local to the comprehension, but a walrus in it binds out here.
        self._visit_all([node.iter, *node.ifs])

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_all(defaults(node.args))

    def visit_FunctionDef(self, node: Function) -> None:
        self.bound.add(node.name)
        self._visit_all([*node.decorator_list, *defaults(node.args)])

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bound.add(node.name)
        self._visit_all([*node.decorator_list, *node.bases, *node.keywords])

    def _add(self, name: str | None) -> None:
        if name is not None:
            self.bound.add(name)

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)


def imported_name(alias: ast.alias) -> str:
    """Return the name that an import binds: `a` for `import a.b`, `c` for `import a.b as c`."""
    return alias.asname or alias.name.partition(".")[0]
