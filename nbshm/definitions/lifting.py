"""What it takes to write a definition of the notebook down: its source, and the live state beside that.

*Lifting and `__main__`.* A worker runs the statement again, in a module that is its `__main__`, so that
pickles by reference (`__main__.smooth`) resolve there as they do for a script. Only the statement runs: the
body of a class, and decorators that can be imported. What the notebook has evaluated or changed since
(defaults, class attributes, patched methods, attributes of functions) is taken from the live object, which
wins over the source.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

from nbshm.definitions import live
from nbshm.definitions.annotations import expression_names, quoted_names
from nbshm.definitions.bindings import Function, scope_bindings
from nbshm.definitions.by_value import is_generic
from nbshm.definitions.live_values import live_values
from nbshm.definitions.names import (
    code_attributes,
    code_names,
    default_names,
    definition_time_names,
    name_lines,
)
from nbshm.definitions.sources import Source, definition_statement, find_source
from nbshm.definitions.statements import POSTPONED
from nbshm.definitions.states import State, state_of
from nbshm.own_definitions import is_notebooks
from nbshm.words import line_in_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifted:
    """A definition of the notebook, ready to be written down.

    `early` are the names that must be there when the statement runs, `late` those that it reads when it is
    used, `hints` those that only its postponed annotations name. `lines` are those in which its
    code first uses a name. `live` are values for expressions (see
    `live.py`); where such a value refers to something that is defined later, its key may be in `deferrable`:
    then the value can be set after the last definition. Meanwhile a class attribute is evaluated as it is
    written, which needs the names that `deferrable` has for it; the default of a function is None.
    """

    name: str
    source: Source
    early: frozenset[str]
    late: frozenset[str]
    hints: frozenset[str]
    attributes: frozenset[str]
    lines: Mapping[str, int]
    live: Mapping[str, Any]
    deferrable: Mapping[str, frozenset[str]]
    state: State
    is_class: bool

    def use(self, name: str) -> str:
        """Say where the definition uses a name, for messages: `load_rows, In [3] line 7`."""
        origin = self.source.origin
        return f"{self.name}, {line_in_words(self.lines.get(name, origin.line), origin.cell)}"


def lift(name: str, definition: Any, namespace: Mapping[str, Any], cells: Mapping[str, int]) -> Lifted | None:
    """Return what a worker needs to run the definition of that global name; None if it must go by value.

    `cells` maps the file names of the notebook's cells to their execution counts.
    """
    source = find_source(definition, cells=cells)
    if source is None or is_generic(definition):  # others have registered with it
        return None
    statement = definition_statement(source)
    if not all(_can_be_imported(decorator, namespace, own) for decorator, own in _decorators(statement)):
        return None
    values = dict(live_values(statement, definition, namespace))
    deferrable = _deferrable(statement, definition, values, namespace)
    live.replace(statement, {key: ast.Constant(None) for key in values})
    early = definition_time_names(statement, postponed=source.postponed) | _default_names(statement)
    if not all(each in namespace or hasattr(builtins, each) for each in early):  # deleted since
        return None
    code = _compiled(statement, source)
    return Lifted(
        name=name,
        source=source,
        early=early,
        late=frozenset[str]().union(*map(code_names, _functions(code))),
        hints=_hint_names(statement, quoted=not source.postponed),
        attributes=code_attributes(code),
        lines=name_lines(code),
        live=values,
        deferrable=deferrable,
        state=state_of(statement, definition, list(_functions(code))),
        is_class=isinstance(definition, type),
    )


def _compiled(statement: ast.stmt, source: Source) -> CodeType:
    module, flags = ast.Module([statement], []), POSTPONED if source.postponed else 0
    code: CodeType = compile(module, source.origin.filename, "exec", flags, dont_inherit=True)
    return code


def _decorators(
    statement: ast.stmt, own: frozenset[str] = frozenset()
) -> Iterator[tuple[ast.expr, frozenset[str]]]:
    """Yield the decorators that run with the statement, each with the names of the class around it."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield from ((decorator, own) for decorator in statement.decorator_list)
    if isinstance(statement, ast.ClassDef):
        inside = scope_bindings(statement.body).own
        for inner in statement.body:
            yield from _decorators(inner, inside)


def _can_be_imported(expression: ast.expr, namespace: Mapping[str, Any], own: frozenset[str]) -> bool:
    """Tell whether what is called comes from an importable module, is a builtin, or the class body's own."""
    root = _root(expression)
    if root is None:
        return False
    if root in own:
        return True
    if root not in namespace:
        return hasattr(builtins, root)
    value = namespace[root]
    if isinstance(value, ModuleType):
        return True
    return hasattr(value, "__qualname__") and not is_notebooks(value)


def _root(expression: ast.expr) -> str | None:
    """Return the name at the left end of `a.b(c)[d]`."""
    while isinstance(expression, (ast.Attribute, ast.Call, ast.Subscript)):
        expression = expression.func if isinstance(expression, ast.Call) else expression.value
    return expression.id if isinstance(expression, ast.Name) else None


def _deferrable(
    statement: ast.stmt, definition: Any, values: Mapping[str, Any], namespace: Mapping[str, Any]
) -> dict[str, frozenset[str]]:
    """Return the live values that can be set later, with the names that their expressions need meanwhile."""
    if isinstance(definition, FunctionType) and not getattr(statement, "decorator_list", ()):
        return dict.fromkeys(values, frozenset())
    deferrable = {}
    for key, slot in live.slots(statement):
        if key in values and key.count(".") == 1 and _can_run_again(slot.expression, namespace):
            deferrable[key] = expression_names(slot.expression)
    return deferrable


def _can_run_again(expression: ast.expr, namespace: Mapping[str, Any]) -> bool:
    """Tell whether an expression makes nothing but a fresh value: `{}`, `defaultdict(list)`."""
    try:
        ast.literal_eval(expression)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return isinstance(expression, ast.Call) and all(
            _can_be_imported(part, namespace, frozenset())
            for part in ast.walk(expression)
            if isinstance(part, (ast.Name, ast.Call))
        )
    return True


def _default_names(statement: ast.stmt) -> frozenset[str]:
    """Return the names in a function's own defaults that are left to be evaluated."""
    return frozenset() if isinstance(statement, ast.ClassDef) else default_names(cast("Function", statement))


def _functions(code: CodeType) -> Iterator[CodeType]:
    """Yield the outermost functions in a module's or class body's code."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_OPTIMIZED:
                yield constant
            else:
                yield from _functions(constant)


def _hint_names(statement: ast.stmt, *, quoted: bool) -> frozenset[str]:
    """Return the names in annotations that are not evaluated: a dataclass or a checker may ask for them."""
    find = quoted_names if quoted else expression_names
    return frozenset[str]().union(*map(find, _annotations(statement)))


def _annotations(statement: ast.stmt) -> Iterator[ast.expr]:
    for node in ast.walk(statement):
        match node:
            case ast.AnnAssign(annotation=annotation) | ast.arg(annotation=ast.expr() as annotation):
                yield annotation
            case (
                ast.FunctionDef(returns=ast.expr() as returns)
                | ast.AsyncFunctionDef(returns=ast.expr() as returns)
            ):
                yield returns
            case _:
                pass
