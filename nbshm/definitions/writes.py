"""Which of the notebook's values a cell writes into: items, attributes, calls of methods that change.

And to which of its names and attributes it adds: `total += x`, `total = total + x`, `box.total += x`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from nbshm.definitions.loops import Loop, loops
from nbshm.definitions.nodes import outside_definitions, with_locals
from nbshm.definitions.reads import read_elsewhere
from nbshm.definitions.steps import Step, step_to_item, way_to

# Methods by which the built-in containers are changed in place.
_CHANGING = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "remove", "setdefault", "update"}
)
# And by which objects of libraries are, where nothing uses their value: estimators, graphs, pictures.
FITTING = frozenset({"fit", "partial_fit"})
CHANGING_OBJECTS = FITTING | {
    *("add_edge", "add_edges_from", "add_node", "add_nodes_from", "putpixel"),
    *("remove_edge", "remove_edges_from", "remove_node", "remove_nodes_from"),
}
_INDEXERS = frozenset({"loc", "iloc", "at", "iat"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write into what a name leads to by some steps; `text` is how the code calls that.

    With `binds` the name itself is bound to something made of its value.

    `updates` leads on to the item that is updated in place, if it can be: by `+=`, not by `=`. `uses_result`:
    it is a call whose value is used, so that it may change nothing; `method` is what is called. `looped` is
    the number of steps to what a loop goes through, if it is the loop's variable that the code calls it by;
    `text` is then how that is called. `is_read`: the cell does more with the name than to write into it.
    """

    name: str
    steps: tuple[Step, ...]
    text: str
    updates: Step | None = None
    binds: bool = False
    uses_result: bool = False
    method: str | None = None
    looped: int | None = None
    is_read: bool = False


def writes(tree: ast.Module) -> list[Write]:
    """Return the writes of a cell: `x[i] = ...`, `x.loc[i] = ...`, `x.a.append(...)`, `x.a += ...`."""
    places = list(with_locals(tree))
    nodes = [node for node, _ in places]
    updated = {id(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    last = {id(node.value) for node in tree.body[-1:] if isinstance(node, ast.Expr)}
    into = [
        (node, write)
        for node, own in places
        for write in _writes(node, is_updated=id(node) in updated, is_alone=id(node) in alone)
        if write.name not in own
        if not (write.method in FITTING and id(node) in last)  # it returns the estimator, which comes back
    ]
    into += [(node, write) for node in outside_definitions(tree) for write in _added_to(node)]
    variables = loops(tree)
    changed = {id(node): _names(write, variables) for node, write in into if not write.uses_result}
    read = read_elsewhere(tree, changed)
    return [
        replace(_through_loops(write, variables), is_read=not read.isdisjoint(_names(write, variables)))
        for _, write in into
    ]


def _names(write: Write, variables: Mapping[str, Loop]) -> frozenset[str]:
    """Return the name of a write, and those of what it is a loop's variable for."""
    names, name = {write.name}, write.name
    while name in variables and (name := variables[name].whole.name) not in names:
        names.add(name)
    return frozenset(names)


def _writes(node: ast.AST, *, is_updated: bool, is_alone: bool) -> Iterator[Write]:
    match node:
        case ast.Subscript(value=into, slice=key, ctx=ast.Store() | ast.Del()):
            yield from _into(_without_indexer(into), updates=step_to_item(key) if is_updated else None)
        case ast.Call(func=ast.Attribute(value=into, attr=method), keywords=keywords):
            in_place = any(map(_says_in_place, keywords))
            if method in _CHANGING or in_place or (is_alone and method in CHANGING_OBJECTS):
                yield from _into(into, uses_result=not (is_alone or in_place), method=method)


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


def _into(
    node: ast.expr, *, updates: Step | None = None, uses_result: bool = False, method: str | None = None
) -> Iterator[Write]:
    way = way_to(node)
    if way is not None:
        yield Write(
            name=way.name,
            steps=way.steps,
            text=way.text,
            updates=updates,
            uses_result=uses_result,
            method=method,
        )


def _without_indexer(into: ast.expr) -> ast.expr:
    """Return the frame in `frame.loc`."""
    return into.value if isinstance(into, ast.Attribute) and into.attr in _INDEXERS else into


def _says_in_place(keyword: ast.keyword) -> bool:
    match keyword:
        case ast.keyword(arg="inplace", value=ast.Constant(value=True)):
            return True
    return False


def _through_loops(write: Write, variables: Mapping[str, Loop]) -> Write:
    """Return a write into a loop's variable as one into what the loop goes through."""
    if write.name not in variables or write.binds:
        return write
    loop = variables[write.name]
    whole = loop.whole
    found = replace(
        write,
        name=whole.name,
        steps=(*whole.steps, loop.step, *write.steps),
        text=whole.text,
        looped=len(whole.steps),
    )
    return _through_loops(found, {name: one for name, one in variables.items() if one is not loop})
