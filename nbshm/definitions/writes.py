"""Which of the notebook's values a cell writes into: items, attributes, calls of methods that change.

And to which of its names and attributes it adds: `total += x`, `total = total + x`, `box.total += x`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from nbshm.definitions.bindings import parameter_names, scope_bindings

# Methods by which the built-in containers are changed in place.
_CHANGING = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "remove", "setdefault", "update"}
)
_INDEXERS = frozenset({"loc", "iloc", "at", "iat"})

Step: TypeAlias = tuple[Literal["item", "attribute", "any item", "each"], object]
"""How a part is reached: by its key, its name, a key that only running the code would tell, or a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write into what a name leads to by some steps; `text` is how the code calls that.

    With `binds` the name itself is bound to something made of its value.

    `updates` leads on to the item that is updated in place, if it can be: by `+=`, not by `=`. `uses_result`:
    it is a call whose value is used, so that it may change nothing. `looped` is the number of steps to what a
    loop goes through, if it is the loop's variable that the code calls it by; `text` is then how that is
    called.
    """

    name: str
    steps: tuple[Step, ...]
    text: str
    updates: Step | None = None
    binds: bool = False
    uses_result: bool = False
    looped: int | None = None


def writes(tree: ast.Module) -> list[Write]:
    """Return the writes of a cell: `x[i] = ...`, `x.loc[i] = ...`, `x.a.append(...)`, `x.a += ...`."""
    places = list(_with_locals(tree))
    nodes = [node for node, _ in places]
    updated = {id(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    into = [
        write
        for node, own in places
        for write in _writes(node, is_updated=id(node) in updated, is_alone=id(node) in alone)
        if write.name not in own
    ]
    added_to = [write for node in _outside_definitions(tree) for write in _added_to(node)]
    loops = _loops(tree, nodes)
    return [_through_loops(write, loops) for write in [*into, *added_to]]


def _outside_definitions(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from _outside_definitions(child)


def _with_locals(
    node: ast.AST, own: frozenset[str] = frozenset()
) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Yield a node and those in it, each with the names that are local to the functions around it."""
    yield node, own
    body: Sequence[ast.AST] = ()
    inner = own
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        inner = _locals(node.args, body, own)
    inside = set(map(id, body))
    for child in ast.iter_child_nodes(node):
        yield from _with_locals(child, inner if id(child) in inside else own)


def _locals(arguments: ast.arguments, body: Sequence[ast.AST], around: frozenset[str]) -> frozenset[str]:
    bindings = scope_bindings(body)
    return (around | bindings.own | parameter_names(arguments)) - bindings.declared_global


def _added_to(node: ast.AST) -> Iterator[Write]:
    """Yield the name or the attribute that a statement binds to something made of its value."""
    match node:
        case ast.AugAssign(target=ast.Name(id=name)):
            yield Write(name=name, steps=(), text=name, binds=True)
        case ast.AugAssign(target=ast.Attribute() as target):
            yield from _into(target)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(left=left, right=right)):
            if any(isinstance(side, ast.Name) and side.id == name for side in (left, right)):
                yield Write(name=name, steps=(), text=name, binds=True)


def _writes(node: ast.AST, *, is_updated: bool, is_alone: bool) -> Iterator[Write]:
    match node:
        case ast.Subscript(value=into, slice=key, ctx=ast.Store() | ast.Del()):
            yield from _into(_without_indexer(into), updates=_item(key) if is_updated else None)
        case ast.Call(func=ast.Attribute(value=into, attr=method), keywords=keywords):
            in_place = any(map(_says_in_place, keywords))
            if method in _CHANGING or in_place:
                yield from _into(into, uses_result=not (is_alone or in_place))


def _into(node: ast.expr, *, updates: Step | None = None, uses_result: bool = False) -> Iterator[Write]:
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
    yield Write(
        name=inner.id,
        steps=tuple(reversed(steps)),
        text=ast.unparse(node),
        updates=updates,
        uses_result=uses_result,
    )


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


_Loops: TypeAlias = dict[str, tuple[ast.expr, Step]]
"""What each loop's variable goes through, and the step from there to its values."""

_PASSING_ON = frozenset({"claim", "list", "progress", "reversed", "sorted", "tqdm", "tuple"})


def _loops(tree: ast.Module, nodes: Iterable[ast.AST]) -> _Loops:
    """Return the loops of a cell, outside of definitions, whose variable nothing else binds."""
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = Counter(name.id for name in names if not isinstance(name.ctx, ast.Load))
    statements = (node for node in _outside_definitions(tree) if isinstance(node, (ast.For, ast.AsyncFor)))
    loops = dict(loop for node in statements for loop in _variables(node.target, node.iter))
    return {name: loop for name, loop in loops.items() if bound[name] == 1}


def _variables(target: ast.expr, iterable: ast.expr) -> Iterator[tuple[str, tuple[ast.expr, Step]]]:
    """Yield the variables that a loop over this binds, where it is plain what to."""
    match target, iterable:
        case ast.Name(id=name), ast.Name() | ast.Attribute() | ast.Subscript():
            yield name, (iterable, ("each", None))
        case ast.Name(id=name), ast.Call(func=ast.Attribute(value=whole, attr="values"), args=[]):
            yield name, (whole, ("any item", None))
        case (
            ast.Tuple(elts=[_, ast.Name(id=name)]),
            ast.Call(func=ast.Attribute(value=whole, attr="items"), args=[]),
        ):
            yield name, (whole, ("any item", None))
        case ast.Tuple(elts=[_, inner]), ast.Call(func=ast.Name(id="enumerate"), args=[whole, *_]):
            yield from _variables(inner, whole)
        case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="zip"), args=iterables):
            for each, whole in zip(targets, iterables, strict=False):
                yield from _variables(each, whole)
        case _, ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[whole, *_]):
            if called in _PASSING_ON:
                yield from _variables(target, whole)


def _through_loops(write: Write, loops: _Loops) -> Write:
    """Return a write into a loop's variable as one into what the loop goes through."""
    if write.name not in loops or write.binds:
        return write
    iterable, step = loops[write.name]
    rest = {name: loop for name, loop in loops.items() if name != write.name}
    for into in _into(iterable):
        steps = (*into.steps, step, *write.steps)
        found = replace(write, name=into.name, steps=steps, text=into.text, looped=len(into.steps))
        return _through_loops(found, rest)
    return write
