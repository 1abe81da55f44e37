"""The live values of a definition's expressions, where these differ from what a worker would evaluate."""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import inspect
import typing
from collections.abc import Iterator, Mapping
from types import FunctionType, MemberDescriptorType
from typing import Any

from nbshm.attributes import found_at
from nbshm.definitions import live
from nbshm.definitions.uses import dotted_path, mangled_name
from nbshm.own_definitions import is_notebooks_function


def live_values(
    statement: ast.stmt, definition: Any, namespace: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of the expressions that are not to be evaluated again (see `live.py`)."""
    for key, slot in live.slots(statement):
        found = _live_value(definition, key.split(".")[1:], slot, namespace)
        if found and not _is_literally(slot.expression, found[0]):
            yield key, found[0]


def raw_function(value: Any) -> FunctionType | None:
    """Return the function that a `def` statement made, from inside what its decorators made of it."""
    value = described(value)
    if callable(value) and not isinstance(value, type):
        value = inspect.unwrap(value)
    return value if isinstance(value, FunctionType) else None


def described(value: Any) -> Any:
    """Return what is behind a property, a class method and their like."""
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, (classmethod, staticmethod)):
        value = value.__func__
    elif isinstance(
        value, (functools.cached_property, functools.partialmethod, functools.singledispatchmethod)
    ):
        value = value.func
    return value


def _live_value(
    definition: Any, path: list[str], slot: live.Slot, namespace: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return (value,) for an expression whose live value can stand in for it, else ()."""
    *outer, last = path
    if outer and outer[-1] == live.BASES:
        outer.pop()
    holder = definition
    for name in outer:
        if not isinstance(holder, type) or name not in vars(holder):
            return ()
        holder = vars(holder)[name]
    if isinstance(slot.holder, ast.arguments):
        return _default(raw_function(holder), last)
    if not isinstance(holder, type):
        return ()
    if isinstance(slot.holder, ast.ClassDef):
        return _base(holder, slot, namespace)
    return _class_attribute(holder, mangled_name(last, holder.__name__), slot.expression)


def _default(function: FunctionType | None, parameter: str) -> tuple[Any, ...]:
    if function is None:
        return ()
    if function.__kwdefaults__ and parameter in function.__kwdefaults__:
        return (function.__kwdefaults__[parameter],)
    code, defaults = function.__code__, function.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    with_default = positional[len(positional) - len(defaults) :]
    return (defaults[with_default.index(parameter)],) if parameter in with_default else ()


def _base(holder: type, slot: live.Slot, namespace: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return (base,) where the expression would give another class now: defined anew, or made by a call."""
    statement = slot.holder
    assert isinstance(statement, ast.ClassDef)  # noqa: S101  # the caller has seen to it
    bases = vars(holder).get("__orig_bases__", holder.__bases__)
    if len(bases) != len(statement.bases) or any(isinstance(base, ast.Starred) for base in statement.bases):
        return ()
    base, expression = bases[slot.index or 0], slot.expression
    if isinstance(expression, ast.Call):
        return (base,) if isinstance(base, type) else ()
    path = dotted_path(expression.value if isinstance(expression, ast.Subscript) else expression)
    now, then = found_at(path or "", namespace), typing.get_origin(base) or base
    # What is no class (`typing.NamedTuple`) has put another base in its place by itself.
    is_replaced = isinstance(now, type) and isinstance(then, type) and now is not then
    return (base,) if is_replaced else ()


def _class_attribute(holder: type, name: str, expression: ast.expr) -> tuple[Any, ...]:
    """Return (value,) of a class attribute that is data; what a metaclass or descriptor made of it is not."""
    if isinstance(holder, enum.EnumMeta) or name not in vars(holder) or name == "__slots__":
        return ()
    field = vars(holder).get("__dataclass_fields__", {}).get(name)
    if field is not None and isinstance(expression, ast.Call) and not _has_only_a_default(field):
        return ()
    value = vars(holder)[name]
    if field is not None and isinstance(value, MemberDescriptorType):  # it has a slot
        value = field.default
    elif name in vars(holder).get("_field_defaults", {}):  # of a named tuple
        value = vars(holder)["_field_defaults"][name]
    if isinstance(value, type):
        return ()
    if isinstance(value, FunctionType):
        is_as_written = isinstance(expression, ast.Lambda) or not is_notebooks_function(value)
        return () if is_as_written else (value,)
    return () if hasattr(type(value), "__get__") else (value,)


def _has_only_a_default(field: dataclasses.Field[Any]) -> bool:
    """Tell whether a dataclass would make that field of its default alone."""
    is_as_usual = field.init and field.repr and field.compare and field.hash is None and not field.metadata
    return is_as_usual and field.default is not dataclasses.MISSING


def _is_literally(expression: ast.expr, value: Any) -> bool:
    """Tell whether the expression is a literal that still has that value."""
    try:
        written = ast.literal_eval(expression)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return False
    if isinstance(written, (list, dict, set)):  # may have been changed in place, and has an identity
        return False
    return type(written) is type(value) and repr(written) == repr(value)
