"""Expressions of a definition whose value the notebook has already: defaults, class attributes, bases.

They were evaluated once, when the person ran the cell, and may have changed since (a list that is a default,
a class attribute that was set, a base that was defined anew). So a worker does not evaluate them again: it is
given the live values. Both sides find such an expression by the same key: `smooth.config` is the default of
the parameter `config` of `smooth`, `Model.rate` the class attribute, `Model.step.n` the default of a method's
parameter, `Model.__bases__.0` the first base.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

BASES = "__bases__"

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The place of one expression in a syntax tree."""

    holder: ast.AST
    field: str
    index: int | None = None

    @property
    def expression(self) -> ast.expr:
        """The expression that stands there now."""
        value = getattr(self.holder, self.field)
        found = value if self.index is None else value[self.index]
        assert isinstance(found, ast.expr)  # noqa: S101  # defaults and values are expressions
        return found

    def replace(self, expression: ast.expr) -> None:
        """Put another expression there, at the same place of the text."""
        ast.copy_location(expression, self.expression)
        if self.index is None:
            setattr(self.holder, self.field, expression)
        else:
            getattr(self.holder, self.field)[self.index] = expression
        ast.fix_missing_locations(expression)


def slots(definition: ast.stmt, path: str = "") -> Iterator[tuple[str, Slot]]:
    """Yield the key and place of each expression of a definition that has a live value, in order."""
    if isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from _defaults(definition.args, f"{path}{definition.name}.")
    elif isinstance(definition, ast.ClassDef):
        for index in range(len(definition.bases)):
            slot = Slot(holder=definition, field="bases", index=index)
            yield f"{path}{definition.name}.{BASES}.{index}", slot
        changing = names_worked_on(definition)
        for statement in definition.body:
            if _bound_name(statement) not in changing:
                yield from _class_level(statement, f"{path}{definition.name}.")


def replace(definition: ast.stmt, replacements: Mapping[str, ast.expr]) -> None:
    """Put expressions at the places that the keys name."""
    for key, slot in list(slots(definition)):
        if key in replacements:
            slot.replace(replacements[key])


def names_worked_on(definition: ast.ClassDef) -> frozenset[str]:
    """Return the names that a class body binds, and that a loop or another statement in it may change then.

    Such a statement would do so once more to a live value: it is given what the body makes of them.
    """
    bound = {name for statement in definition.body if (name := _bound_name(statement)) is not None}
    others = [
        statement
        for statement in definition.body
        if not isinstance(statement, Definition) and _bound_name(statement) is None
    ]
    nodes = (node for statement in others for node in ast.walk(statement))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and node.id in bound)


def _bound_name(statement: ast.stmt) -> str | None:
    """Return the name that a statement of a class body binds to an expression, if that is all it does."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return None


def _class_level(statement: ast.stmt, path: str) -> Iterator[tuple[str, Slot]]:
    name = _bound_name(statement)
    if name is None:
        yield from slots(statement, path)
    elif getattr(statement, "value", None) is not None:
        yield f"{path}{name}", Slot(holder=statement, field="value")


def _defaults(arguments: ast.arguments, path: str) -> Iterator[tuple[str, Slot]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    for index, argument in enumerate(with_default):
        yield f"{path}{argument.arg}", Slot(holder=arguments, field="defaults", index=index)
    for index, argument in enumerate(arguments.kwonlyargs):
        if arguments.kw_defaults[index] is not None:
            yield f"{path}{argument.arg}", Slot(holder=arguments, field="kw_defaults", index=index)
