"""Which names a piece of code reads and binds: a cell by its syntax, compiled code by its instructions.

Builtins are names like any other here, since a notebook may shadow them: who asks knows what the notebook
has.
"""

from __future__ import annotations

import ast
import dis
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType

from nbshm.definitions.annotations import annotation_names
from nbshm.definitions.bindings import Function, all_bindings, defaults, scope_bindings
from nbshm.definitions.escapes import write_out
from nbshm.definitions.scopes import ModuleScope

__all__ = [
    "Names",
    "annotation_names",
    "cell_names",
    "code_attributes",
    "code_names",
    "default_names",
    "definition_time_names",
    "name_lines",
]

# Instructions that name a global, or may: in a class body LOAD_NAME looks for a global last.
_GLOBAL_INSTRUCTIONS = frozenset(
    {"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a cell has to do with the names around it.

    - `reads`: names whose value from before the cell may be read, since not every path binds them first.
    - `lines`: for each of these the first line in which it is read.
    - `perhaps_bound`: those of them that the cell may have bound itself wherever it reads them (in a loop
      that may have no round, in one branch): if the value from before can't travel, that is no reason to
      refuse the cell.
    - `binds`: all names that the cell can bind at its top level, also by `global` in a function.
    - `attributes`: dotted uses of names, as long as they are written: `scipy.stats.norm`.
    - `annotated`: names in annotations that are quoted or not evaluated.
    - `star_imports`: modules from which the cell imports `*`, binding names that the syntax doesn't tell.
    """

    reads: frozenset[str]
    lines: Mapping[str, int]
    perhaps_bound: frozenset[str]
    binds: frozenset[str]
    attributes: frozenset[str]
    annotated: frozenset[str]
    star_imports: tuple[str, ...]


def cell_names(tree: ast.Module, *, postponed: bool = False) -> Names:
    """Find the names that a cell, given as its transformed syntax tree, reads and binds.

    `postponed` says that `from __future__ import annotations` is in force from an earlier cell. Code and
    expansions inside magics and shell escapes count as the cell's own. The tree is left as it is.
    """
    tree = write_out(tree)
    scope = ModuleScope(scope_bindings(tree.body), postponed=postponed or postpones_annotations(tree))
    scope.run(tree.body)
    scope.call_everything()
    lines: dict[str, int] = {}
    for use in scope.uses:
        lines[use.name] = min(use.line, lines.get(use.name, use.line))
    return Names(
        reads=frozenset(lines),
        lines=lines,
        perhaps_bound=frozenset(lines) - scope.certain,
        binds=all_bindings(tree),
        attributes=frozenset(path for path in scope.paths if "." in path),
        annotated=frozenset(scope.annotated),
        star_imports=tuple(scope.star_imports),
    )


def definition_time_names(node: ast.stmt, *, postponed: bool) -> frozenset[str]:
    """Return the names that a `def` or `class` statement reads when it runs.

    These are the names in its decorators and evaluated annotations, in a class's bases, keywords and body
    with the decorators, defaults and annotations of its methods; not those in the defaults of a function that
    stands by itself (see `default_names`), nor those in the bodies of functions. The body of a lambda counts,
    as the statement may call it (`sorted(..., key=lambda ...)`), save for the name of the class that it
    is in.
    """
    scope = ModuleScope(scope_bindings([node]), postponed=postponed)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        scope.run(node.decorator_list)
        scope.annotate_signature(node)
    else:
        scope.visit(node)
    return frozenset(use.name for use in scope.uses)


def default_names(node: Function) -> frozenset[str]:
    """Return the names that the defaults of a function's parameters read when its `def` runs."""
    scope = ModuleScope(scope_bindings([node]), postponed=False)
    scope.run(defaults(node.args))
    return frozenset(use.name for use in scope.uses)


def postpones_annotations(tree: ast.Module) -> bool:
    """Tell whether the code begins with `from __future__ import annotations`."""
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__")
    return any(alias.name == "annotations" for node in imports for alias in node.names)


def code_names(code: CodeType) -> frozenset[str]:
    """Return the global names that `code`, and all code nested in it, reads, binds or deletes."""
    return frozenset(name_lines(code))


def name_lines(code: CodeType) -> dict[str, int]:
    """Return the global names that `code`, and all code nested in it, uses, each with its first line."""
    lines: dict[str, int] = {}
    for each in nested_code(code):
        for name, line in _global_uses(each):
            lines[name] = min(line, lines.get(name, line))
    return lines


def _global_uses(code: CodeType) -> Iterator[tuple[str, int]]:
    """Yield the instructions that use a global, as its name and the line."""
    starts, line = deque(dis.findlinestarts(code)), code.co_firstlineno
    for instruction in dis.get_instructions(code):
        while starts and starts[0][0] <= instruction.offset:
            line = starts.popleft()[1] or line
        if instruction.opname in _GLOBAL_INSTRUCTIONS:
            yield instruction.argval, line


def code_attributes(code: CodeType) -> frozenset[str]:
    """Return the attribute names (and other names) that `code`, and all code nested in it, uses.

    A module `a.b` whose `b` is among them, where `a` is read, may be needed as `import a.b` would make it.
    """
    return frozenset(name for each in nested_code(code) for name in each.co_names)


def nested_code(code: CodeType) -> Iterator[CodeType]:
    """Yield `code` and all code objects inside it: functions, comprehensions, class bodies."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested_code(constant)
