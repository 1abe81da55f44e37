"""What it takes to write a definition of the notebook down: its source, and the live state it has beside that.

*Lifting and `__main__`.* A worker runs the statement again, in a module that is its `__main__`, so that pickles by
reference (`__main__.smooth`) resolve there as they do for a script. Only the statement runs: the body of a class,
and decorators that can be imported. What the notebook has evaluated or changed since (defaults, class attributes,
patched methods, attributes of functions) is taken from the live object, which wins over the source.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

from nbshm.definitions import live
from nbshm.definitions.annotations import expression_names, quoted_names
from nbshm.definitions.bindings import Function
from nbshm.definitions.names import code_attributes, code_names, default_names, definition_time_names
from nbshm.definitions.sources import Source, definition_statement, find_source
from nbshm.jobs import State

_PLAIN = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, type(None))
_GENERATED = ("<string", "<attrs", "<frozen")  # file names of methods that dataclasses, attrs and typing write


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifted:
    """A definition of the notebook, ready to be written down.

    `early` are the names that must be there when the statement runs, `late` those that it reads when it is used,
    `hints` those that only its postponed annotations name. `live` are values for expressions (see `live.py`).
    """

    name: str
    source: Source
    early: frozenset[str]
    late: frozenset[str]
    hints: frozenset[str]
    attributes: frozenset[str]
    live: Mapping[str, Any]
    state: State

    @property
    def title(self) -> str:
        """The name with the place of the definition, for messages."""
        origin = self.source.origin
        return f"{self.name}, line {origin.line}" if origin.cell is None else f"{self.name}, In [{origin.cell}] line {origin.line}"


def lift(name: str, definition: Any, namespace: Mapping[str, Any], cells: Mapping[str, int]) -> Lifted | None:
    """Return what a worker needs to run the definition of that global name; None if it must go by value.

    `cells` maps the file names of the notebook's cells to their execution counts.
    """
    source = find_source(definition, cells=cells)
    if source is None:
        return None
    statement = definition_statement(source)
    if not all(_can_be_imported(decorator, namespace) for decorator in _decorators(statement)):
        return None
    values = dict(_live_values(statement, definition))
    live.replace(statement, {key: ast.Constant(None) for key in values})
    code = compile(ast.Module([statement], []), source.origin.filename, "exec", _flags(source), dont_inherit=True)
    return Lifted(
        name=name,
        source=source,
        early=definition_time_names(statement, postponed=source.postponed) | _default_names(statement),
        late=frozenset().union(*map(code_names, _functions(code))),
        hints=_hint_names(statement, quoted=not source.postponed),
        attributes=code_attributes(code),
        live=values,
        state=_state(statement, definition, _functions_by_name(code)),
    )


def raw_function(value: Any) -> FunctionType | None:
    """Return the function that a `def` statement made, from inside what its decorators made of it."""
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, (classmethod, staticmethod)):
        value = value.__func__
    if callable(value) and not isinstance(value, type):
        value = inspect.unwrap(value)
    return value if isinstance(value, FunctionType) else None


def _flags(source: Source) -> int:
    import __future__  # noqa: PLC0415  # a module of its own, used for this one number

    return __future__.annotations.compiler_flag if source.postponed else 0


def _decorators(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the decorators that run with the statement: its own, and those inside a class body."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield from statement.decorator_list
    if isinstance(statement, ast.ClassDef):
        for inner in statement.body:
            yield from _decorators(inner)


def _can_be_imported(decorator: ast.expr, namespace: Mapping[str, Any]) -> bool:
    """Tell whether a decorator comes from an importable module (or is a builtin, or is made in a class body)."""
    root = decorator
    while isinstance(root, (ast.Attribute, ast.Call, ast.Subscript)):
        root = root.func if isinstance(root, ast.Call) else root.value
    if not isinstance(root, ast.Name):
        return False
    value = namespace.get(root.id)
    if value is None or isinstance(value, ModuleType):
        return True
    return getattr(value, "__module__", "__main__") != "__main__" and hasattr(value, "__qualname__")


def _live_values(statement: ast.stmt, definition: Any) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of the expressions that are not to be evaluated again."""
    for key, slot in live.slots(statement):
        found = _live_value(definition, key.split(".")[1:], slot)
        if found and not _is_literally(slot.expression, found[0]):
            yield key, found[0]


def _live_value(definition: Any, path: list[str], slot: live.Slot) -> tuple[Any, ...]:
    """Return (value,) for an expression whose live value can stand in for it, else ()."""
    *outer, last = path
    holder = definition
    for name in outer:
        if not isinstance(holder, type) or name not in vars(holder):
            return ()
        holder = vars(holder)[name]
    if isinstance(slot.holder, ast.arguments):
        return _default(raw_function(holder), last)
    return _class_attribute(holder, last, slot.expression) if isinstance(holder, type) else ()


def _default(function: FunctionType | None, parameter: str) -> tuple[Any, ...]:
    if function is None:
        return ()
    if function.__kwdefaults__ and parameter in function.__kwdefaults__:
        return (function.__kwdefaults__[parameter],)
    code, defaults = function.__code__, function.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    with_default = positional[len(positional) - len(defaults) :]
    return (defaults[with_default.index(parameter)],) if parameter in with_default else ()


def _class_attribute(holder: type, name: str, expression: ast.expr) -> tuple[Any, ...]:
    """Return (value,) of a class attribute that is data; what a metaclass or descriptor made of it is not."""
    if isinstance(holder, enum.EnumMeta) or name not in vars(holder) or name == "__slots__":
        return ()
    if dataclasses.is_dataclass(holder) and isinstance(expression, ast.Call):
        return ()
    value = vars(holder)[name]
    if isinstance(value, type) or callable(value) or hasattr(type(value), "__get__"):
        return ()
    return (value,)


def _is_literally(expression: ast.expr, value: Any) -> bool:
    """Tell whether the expression is a literal that still has that value."""
    try:
        written = ast.literal_eval(expression)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return False
    if isinstance(written, (list, dict, set)):  # may have been changed in place, and has an identity
        return False
    return type(written) is type(value) and repr(written) == repr(value)


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


def _functions_by_name(code: CodeType) -> dict[str, CodeType]:
    return {function.co_name: function for function in _functions(code)}


def _hint_names(statement: ast.stmt, *, quoted: bool) -> frozenset[str]:
    """Return the names in annotations that are not evaluated: a dataclass or a checker may ask for them."""
    find = quoted_names if quoted else expression_names
    return frozenset[str]().union(*map(find, _annotations(statement)))


def _annotations(statement: ast.stmt) -> Iterator[ast.expr]:
    for node in ast.walk(statement):
        match node:
            case ast.AnnAssign(annotation=annotation) | ast.arg(annotation=ast.expr() as annotation):
                yield annotation
            case ast.FunctionDef(returns=ast.expr() as returns) | ast.AsyncFunctionDef(returns=ast.expr() as returns):
                yield returns
            case _:
                pass


def _state(statement: ast.stmt, definition: Any, functions: Mapping[str, CodeType]) -> State:
    if isinstance(definition, type) and isinstance(statement, ast.ClassDef):
        return _class_state(statement, definition, functions)
    attributes = {
        name: value for name, value in getattr(definition, "__dict__", {}).items() if name != "__wrapped__"
    }
    if not isinstance(definition, FunctionType):
        return State(changed={}, added={})
    if getattr(statement, "decorator_list", None):
        return State(changed={}, added=attributes)
    return State(changed=attributes, added={})


def _class_state(statement: ast.ClassDef, definition: type, functions: Mapping[str, CodeType]) -> State:
    """Return what was set on a class after its statement ran: patched methods, attributes that came later."""
    if isinstance(definition, enum.EnumMeta):
        return State(changed={}, added={})
    bound = {name for inner in statement.body for name in _bound(inner)}
    changed, added = {}, {}
    for name, value in vars(definition).items():
        if name in functions and _is_patched(value, functions[name]):
            changed[name] = value
        elif name not in bound and _is_users(name, value):
            added[name] = value
    return State(changed=changed, added=added)


def _bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _is_patched(value: Any, code: CodeType) -> bool:
    """Tell whether a method is another one than the class statement made."""
    function = raw_function(value)
    if function is None:
        return not isinstance(value, property)
    return function.__code__.co_firstlineno != code.co_firstlineno or function.__code__.co_code != code.co_code


def _is_users(name: str, value: Any) -> bool:
    """Tell whether an attribute looks set by a person, not by a decorator or metaclass."""
    function = raw_function(value)
    if function is not None:
        return not function.__code__.co_filename.startswith(_GENERATED)
    return not name.startswith("_") and (isinstance(value, _PLAIN) or not hasattr(type(value), "__get__"))
