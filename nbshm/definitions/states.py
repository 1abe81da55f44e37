"""What was done to a definition after its statement ran: patched methods, attributes, what was deleted."""

from __future__ import annotations

import abc
import ast
import enum
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

from nbshm.definitions.bindings import scope_bindings
from nbshm.definitions.live import names_worked_on
from nbshm.definitions.live_values import described, raw_function
from nbshm.definitions.uses import mangled_name
from nbshm.own_definitions import is_notebooks_function, reads_notebook

_PLAIN = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, type(None))
# The file names of methods that dataclasses, attrs and typing write begin so.
_GENERATED = ("<string", "<attrs", "<frozen")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Attributes of a definition that its source does not give it.

    `changed` replace what the statement made, those of methods, of an enum's members and of the classes in a
    class by dotted names; `added` are set where the statement made nothing of that name; `removed` are
    deleted. `registered` are virtual subclasses, with an abstract class.
    """

    changed: dict[str, Any]
    added: dict[str, Any]
    removed: tuple[str, ...] = ()
    registered: tuple[type, ...] = ()


_NOTHING = State(changed={}, added={})


def state_of(statement: ast.stmt, definition: Any, functions: Sequence[CodeType]) -> State:
    """Return what the statement does not give; `functions` is the code of the functions in it."""
    if isinstance(definition, type) and isinstance(statement, ast.ClassDef):
        return _class_state(statement, definition, functions)
    if not isinstance(definition, FunctionType):
        return _NOTHING
    attributes = {name: value for name, value in vars(definition).items() if name != "__wrapped__"}
    if getattr(statement, "decorator_list", None):
        return State(changed={}, added={name: one for name, one in attributes.items() if not _is_helper(one)})
    return State(changed={**attributes, **_signature(statement, definition)}, added={})


def _is_helper(value: Any) -> bool:
    """Tell whether a decorator of a library has put a function there, and does so again."""
    return isinstance(value, FunctionType) and not is_notebooks_function(value) and "<" in value.__qualname__


def _signature(statement: ast.stmt, function: FunctionType) -> dict[str, Any]:
    """Return what was set of a function that its parameters' defaults don't tell."""
    assert isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef))  # noqa: S101  # it is a function's
    changed: dict[str, Any] = {}
    if len(function.__defaults__ or ()) != len(statement.args.defaults):
        changed["__defaults__"] = function.__defaults__
    if len(function.__kwdefaults__ or ()) != sum(each is not None for each in statement.args.kw_defaults):
        changed["__kwdefaults__"] = function.__kwdefaults__
    return {**changed, **_docstring(statement, function)}


def _docstring(
    statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, definition: Any
) -> dict[str, Any]:
    text = definition.__doc__
    live = inspect.cleandoc(text) if isinstance(text, str) else text
    return {} if live == ast.get_docstring(statement) else {"__doc__": text}


def _class_state(statement: ast.ClassDef, definition: type, functions: Sequence[CodeType]) -> State:
    bound, written = _bound(statement), _methods(statement)
    is_alone = _makes_all_itself(statement, definition)
    changed, added = {**_of_members(definition, functions), **dict(_worked_on(statement, definition))}, {}
    for name, value in vars(definition).items():
        if name in written and _is_patched(value, written[name], functions):
            changed[name] = value
        elif name in written and not written[name] and isinstance(value, FunctionType):
            changed.update({f"{name}.{attribute}": one for attribute, one in vars(value).items()})
        elif name not in bound and (_is_users(name, value) or (is_alone and _is_no_statements(name, value))):
            added[name] = value
    if ast.get_docstring(statement) is not None:
        changed.update(_docstring(statement, definition))
    removed = tuple(sorted(bound - vars(definition).keys()))
    return State(changed=changed, added=added, removed=removed, registered=tuple(_registered(definition)))


def _worked_on(statement: ast.ClassDef, definition: type) -> Iterator[tuple[str, Any]]:
    """Yield the data, by dotted path, that class bodies have worked on after they had bound them.

    They work on what they make of them in the worker, too, which these replace.
    """
    if isinstance(definition, enum.EnumMeta):
        return
    names = {mangled_name(name, statement.name) for name in names_worked_on(statement)}
    for name in sorted(names & vars(definition).keys()):
        value = vars(definition)[name]
        if not isinstance(value, type) and not hasattr(type(value), "__get__"):
            yield name, value
    for inner in statement.body:
        if isinstance(inner, ast.ClassDef) and isinstance(kind := vars(definition).get(inner.name), type):
            yield from ((f"{inner.name}.{path}", value) for path, value in _worked_on(inner, kind))


def _of_members(definition: type, functions: Sequence[CodeType]) -> dict[str, Any]:
    """Return what the members of an enum have; of what its methods give them anew, only what is plain."""
    given = {name for code in functions for name in code.co_names}
    return {
        f"{member}.{name}": value
        for member, name, value in attributes_of_members(definition)
        if name not in given or isinstance(value, _PLAIN)
    }


def attributes_of_class(definition: type) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of a class, of the classes in it and of an enum's members, by dotted paths."""
    members: Mapping[str, Any] = definition.__members__ if isinstance(definition, enum.EnumMeta) else {}
    for name, value in members.items():
        yield f"{name}._value_", value._value_  # as documented; `value` may be redefined
    yield from ((f"{member}.{name}", value) for member, name, value in attributes_of_members(definition))
    for name, value in vars(definition).items():
        if isinstance(value, type) and value.__qualname__ == f"{definition.__qualname__}.{name}":
            yield from ((f"{name}.{path}", inner) for path, inner in attributes_of_class(value))
        elif not members or (name not in members and not name.startswith("_")):  # its tables have them all
            yield name, value


def attributes_of_members(definition: type) -> Iterator[tuple[str, str, Any]]:
    """Yield a member of an enum, an attribute that does not make it one, and its value; of others nothing."""
    if isinstance(definition, enum.EnumMeta):
        members: Mapping[str, Any] = definition.__members__
        for member, value in members.items():
            own = (name for name in vars(value) if not (name.startswith("_") and name.endswith("_")))
            yield from ((member, name, vars(value)[name]) for name in own)


def _registered(definition: type) -> Iterator[type]:
    """Yield the virtual subclasses of an abstract class, as far as they still are there."""
    if isinstance(definition, abc.ABCMeta):
        references, *_ = abc._get_dump(definition)  # type: ignore[attr-defined]  # noqa: SLF001  # no public door
        living = (reference() for reference in references)
        yield from sorted((one for one in living if one is not None), key=lambda one: one.__qualname__)


def _bound(statement: ast.ClassDef) -> frozenset[str]:
    """Return the names that a class body binds, as the class has them."""
    return frozenset(mangled_name(name, statement.name) for name in scope_bindings(statement.body).own)


def _methods(statement: ast.ClassDef) -> Mapping[str, bool]:
    """Return the names that a class body binds by `def`, with whether that is decorated."""
    return {
        mangled_name(inner.name, statement.name): bool(inner.decorator_list)
        for inner in _definitions(statement.body)
    }


def _definitions(body: Sequence[ast.AST]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        elif not isinstance(node, (ast.ClassDef, ast.expr)):
            yield from _definitions(list(ast.iter_child_nodes(node)))


def _is_patched(value: Any, is_decorated: bool, functions: Sequence[CodeType]) -> bool:  # noqa: FBT001  # plain data
    """Tell whether a method is another one than the class statement made."""
    if isinstance(value, property):
        parts = [part for part in (value.fget, value.fset, value.fdel) if part is not None]
        return any(_is_other(raw_function(part), functions) for part in parts)
    function = raw_function(value)
    if function is None:  # the product of a library's decorator, or something that was put in its place
        return not is_decorated
    return _is_other(function, functions)


def _is_other(function: FunctionType | None, functions: Sequence[CodeType]) -> bool:
    if function is None:
        return False
    code = function.__code__
    return not any(code == each and code.co_filename == each.co_filename for each in functions)


def _makes_all_itself(statement: ast.ClassDef, definition: type) -> bool:
    """Tell whether nobody but its statement had a hand in the making of a class."""
    bases = [base for base in definition.__mro__ if base is not object]
    helped = statement.decorator_list or type(definition) is not type
    return not helped and not any("__init_subclass__" in vars(base) for base in bases)


def _is_no_statements(name: str, value: Any) -> bool:
    """Tell whether an attribute is none of those that class statements make by themselves."""
    is_special = name.startswith("__") and name.endswith("__")
    return not is_special and not isinstance(value, (MemberDescriptorType, GetSetDescriptorType))


def _is_users(name: str, value: Any) -> bool:
    """Tell whether an attribute looks set by a person, not by a decorator or metaclass."""
    outermost, function = described(value), raw_function(value)
    if isinstance(outermost, FunctionType) and reads_notebook(outermost):
        function = outermost
    if function is not None:
        return is_notebooks_function(function) and not function.__code__.co_filename.startswith(_GENERATED)
    return not name.startswith("_") and (isinstance(value, _PLAIN) or not hasattr(type(value), "__get__"))
