"""What the variables of a cell's loops go through, where its text tells."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from nbshm.definitions.nodes import outside_definitions
from nbshm.definitions.steps import Step, Way, way_to

_PASSING_ON = frozenset({"claim", "list", "progress", "reversed", "sorted", "tqdm", "tuple"})
_EACH: Step = ("each", None)
_ANY_ITEM: Step = ("any item", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """What a variable goes through: the way to the whole, and the step from there to its values."""

    whole: Way
    step: Step


def loops(tree: ast.Module) -> dict[str, Loop]:
    """Return the loops of a cell, outside of definitions, whose variable nothing else binds, by that."""
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    bound = Counter(name.id for name in names if not isinstance(name.ctx, ast.Load))
    statements = (node for node in outside_definitions(tree) if isinstance(node, (ast.For, ast.AsyncFor)))
    found = dict(loop for node in statements for loop in _variables(node.target, node.iter))
    return {name: loop for name, loop in found.items() if bound[name] == 1}


def _variables(target: ast.expr, iterable: ast.expr) -> Iterator[tuple[str, Loop]]:
    """Yield the variables that a loop over this binds, where it is plain what to."""
    match target, iterable:
        case ast.Name(id=name), ast.Name() | ast.Attribute() | ast.Subscript():
            yield from _variable(name, iterable, _EACH)
        case ast.Name(id=name), ast.Call(func=ast.Attribute(value=whole, attr="values"), args=[]):
            yield from _variable(name, whole, _ANY_ITEM)
        case (
            ast.Tuple(elts=[_, ast.Name(id=name)]),
            ast.Call(func=ast.Attribute(value=whole, attr="items"), args=[]),
        ):
            yield from _variable(name, whole, _ANY_ITEM)
        case ast.Tuple(elts=[_, inner]), ast.Call(func=ast.Name(id="enumerate"), args=[whole, *_]):
            yield from _variables(inner, whole)
        case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="zip"), args=iterables):
            for each, whole in zip(targets, iterables, strict=False):
                yield from _variables(each, whole)
        case _, ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[whole, *_]):
            if called in _PASSING_ON:
                yield from _variables(target, whole)


def _variable(name: str, whole: ast.expr, step: Step) -> Iterator[tuple[str, Loop]]:
    way = way_to(whole)
    if way is not None:
        yield name, Loop(whole=way, step=step)
