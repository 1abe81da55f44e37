"""What a live class says about the statement that may have made it.

A class statement leaves no code behind to compare, apart from that of its methods. Without methods, what its
body says is compared with what the class has: line, bases, annotations, attributes. Some of it may have been
changed since, so there are contradictions, which rule a statement out, and doubts, which count.
"""

from __future__ import annotations

import ast
import functools
import inspect
import typing
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any, ForwardRef

from nbshm.attributes import attribute
from nbshm.definitions.bindings import type_parameters
from nbshm.definitions.statements import first_line

# The file names of methods that dataclasses, and attrs, write.
_GENERATED = ("<string>", "<attrs generated")

_COMPOUND = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match)


def own_functions(definition: type) -> Iterator[FunctionType]:
    """Yield the functions that a person wrote in the body of the class, decorated or not."""
    prefix = f"{definition.__qualname__}."
    for value in vars(definition).values():
        is_nested = isinstance(value, type) and value.__qualname__.startswith(prefix)
        for function in own_functions(value) if is_nested else _functions(value):
            if function.__qualname__.startswith(prefix) and not _is_foreign(function, definition):
                yield function


def _is_foreign(function: FunctionType, definition: type) -> bool:
    """Tell whether a library has put the function there: enum, NamedTuple, or the code of a dataclass."""
    is_generated = function.__code__.co_filename.startswith(_GENERATED) and function.__name__.startswith("_")
    return is_generated or function.__globals__.get("__name__") != definition.__module__


def _functions(value: Any) -> Iterator[FunctionType]:
    """Yield the functions that an attribute of a class is made of."""
    match value:
        case FunctionType():
            inner = [value.__dict__.get("__wrapped__")]
            yield value
        case property():
            inner = [value.fget, value.fset, value.fdel]
        case classmethod() | staticmethod():
            inner = [value.__func__]
        case functools.cached_property() | functools.partialmethod() | functools.singledispatchmethod():
            inner = [value.func]
        case _:
            inner = [(attribute(value, "__dict__") or {}).get("__wrapped__")]
    for each in inner:
        yield from _functions(each) if each is not None else ()


def contradicts(definition: type, statement: ast.ClassDef) -> bool:
    """Tell whether a class without methods can't have been made by that statement."""
    return (
        any(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) for node in ast.walk(statement))
        or vars(definition).get("__firstlineno__", first_line(statement)) != first_line(statement)
        or not _bases_agree(definition, statement)
        or not _annotations_agree(definition, statement)
        or not all(_is_bound(definition, name, value) for name, value in _assigned(statement))
    )


def doubts(definition: type, statement: ast.ClassDef) -> int:
    """Count what is different in the class now, as if it had been changed since the statement ran."""
    values = _live_values(definition)
    assigned = dict(_assigned(statement))
    bound = assigned.keys() | _annotated(statement).keys()
    changed = sum(
        _is_other(values[name], expression) for name, expression in assigned.items() if name in values
    )
    added = sum(not name.startswith("_") and name not in bound for name in vars(definition))
    docstring = inspect.cleandoc(definition.__doc__ or "") if ast.get_docstring(statement) else None
    return changed + added + _other_bases(definition, statement) + (docstring != ast.get_docstring(statement))


def annotations_are_postponed(definition: type, statement: ast.ClassDef) -> bool:
    """Tell whether the annotations of the class were left unevaluated, so far as one of them can tell."""
    live = _live_annotations(definition)
    for name, annotation in _all_annotated(statement):
        if name in live and not (isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)):
            return isinstance(live[name], (str, ForwardRef))  # a TypedDict makes references of strings
    return False


def _bases_agree(definition: type, statement: ast.ClassDef) -> bool:
    if any(isinstance(base, ast.Starred) for base in statement.bases):
        return True
    expected = len(statement.bases) + bool(type_parameters(statement))  # these add `Generic`
    bases = _written_bases(definition)
    return len(bases) == expected if expected else bases == (object,)


def _written_bases(definition: type) -> tuple[Any, ...]:
    """Return the bases as they were written: `NamedTuple` and `Generic[T]` have put others in their place."""
    return tuple(vars(definition).get("__orig_bases__", definition.__bases__))


def _other_bases(definition: type, statement: ast.ClassDef) -> int:
    """Count the bases whose names differ; a name may be an alias, so that proves nothing."""
    written = [getattr(base, "attr", getattr(base, "id", None)) for base in statement.bases]
    live = [getattr(base, "__name__", None) for base in _written_bases(definition)]
    return sum(name not in (None, other) for name, other in zip(written, live, strict=False))


def _annotations_agree(definition: type, statement: ast.ClassDef) -> bool:
    if any(isinstance(inner, _COMPOUND) for inner in statement.body):
        return True
    written, live = list(_annotated(statement)), list(_live_annotations(definition))
    if typing.is_typeddict(definition):  # it has those of its bases too
        return set(written) <= set(live)
    return written == live


def _live_annotations(definition: type) -> Mapping[str, Any]:
    try:
        return inspect.get_annotations(definition)
    except NameError:  # from Python 3.14 on they are evaluated here, and may name what isn't there yet
        return {}


def _annotated(statement: ast.ClassDef) -> dict[str, ast.expr]:
    """Return the annotated names of the class body with their annotations."""
    return {
        inner.target.id: inner.annotation
        for inner in statement.body
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name)
    }


def _all_annotated(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the annotated names of the class body, those under an `if` and its like included."""
    for inner in ast.iter_child_nodes(node):
        match inner:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                yield name, annotation
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.expr():
                continue
            case _:
                yield from _all_annotated(inner)


def _assigned(statement: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that the class body binds for good by an assignment, with the expressions."""
    deleted = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and _is_deleted(node)}
    for inner in statement.body:
        match inner:
            case ast.Assign(targets=[*targets], value=value):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                names = [name]
            case _:
                continue
        yield from ((name, value) for name in names if name not in deleted)


def _is_deleted(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Del)


def _is_bound(definition: type, name: str, expression: ast.expr) -> bool:
    """Tell whether the class has a name that its body binds.

    The result of a call may have been taken away by who reads it (`field()`, `attr.ib()`), and a name that
    begins with an underscore may have been meant for the metaclass.
    """
    return name in _live_values(definition) or name.startswith("_") or isinstance(expression, ast.Call)


def _live_values(definition: type) -> dict[str, Any]:
    """Return the attributes of the class, and what a dataclass, named tuple or enum has kept of them."""
    members = getattr(definition, "_member_map_", {})
    fields = getattr(definition, "__dataclass_fields__", {})
    return {
        **vars(definition),
        **{name: field.default for name, field in fields.items()},
        **getattr(definition, "_field_defaults", {}),
        **{name: member._value_ for name, member in members.items()},
    }


def _is_other(value: Any, expression: ast.expr) -> bool:
    """Tell whether the expression is a literal with another value."""
    try:
        written = ast.literal_eval(expression)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return False
    return type(written) is not type(value) or repr(written) != repr(value)
