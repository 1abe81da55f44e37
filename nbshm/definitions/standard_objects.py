"""Objects of libraries that pickle would carry as something else than they are, or not at all.

What is known by its identity alone (`dataclasses.MISSING`) would arrive as another object, and so would what
a process has one of: `from random import randint` binds a method of the generator that draws for everybody,
and a copy of that would give each rank the same numbers. What a notebook's statement has made and a name
stands for (a `NewType`) would be looked for before it is there.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import importlib
import inspect
import struct
import sys
import threading
import typing
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeAlias

from cloudpickle import cloudpickle

from nbshm.definitions.sources import home

Reduced: TypeAlias = "tuple[Any, ...] | str"

_TYPED_DICT: Any = typing.TypedDict
_SENTINELS = {type(dataclasses.MISSING): "MISSING", type(dataclasses.KW_ONLY): "KW_ONLY"}
_SINGLETONS = {  # by the name of their class: its library may never be imported
    "Random": ("random", "_inst"),
    "RandomState": ("numpy.random.mtrand", "_rand"),
    "Generator": ("torch", "default_generator"),
    "RcParams": ("matplotlib", "rcParams"),
    "_Environ": ("os", "environ"),
    "MPContext": ("mpmath", "mp"),
    "FPContext": ("mpmath", "fp"),
    "MPIntervalContext": ("mpmath", "iv"),
}
_CONSTANTS = {"constant": "mpmath"}  # likewise, with a module that has each under a name


def home_of_the_only_one(value: Any) -> tuple[str, str] | None:
    """Return the (module, name) of an object that a process has one of; None for any other."""
    name = _SENTINELS.get(type(value))
    if name is not None:
        return dataclasses.__name__, name
    kind = type(value).__name__
    if kind in _CONSTANTS:
        return _found_in(_CONSTANTS[kind], value)
    home = _SINGLETONS.get(kind)
    module = None if home is None else sys.modules.get(home[0])
    return home if home is not None and vars(module or object).get(home[1]) is value else None


def _found_in(module: str, value: Any) -> tuple[str, str] | None:
    names = vars(sys.modules.get(module, object))
    return next(((module, name) for name, one in names.items() if one is value), None)


def reduce_the_only_one(value: Any) -> Reduced | None:
    """Reduce such an object to the receiver's own; None for any other."""
    home = home_of_the_only_one(value)
    return None if home is None else (_found_at, home)


def _found_at(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def reducers() -> dict[type, Callable[[Any], Reduced]]:
    """Return a reducer for each type of such objects."""
    found: dict[type, Callable[[Any], Reduced]] = {
        **dict.fromkeys(_SENTINELS, _reduce_sentinel),
        typing.NewType: _reduce_new_type,
        typing.ParamSpec: _reduce_parameters,
        functools.cached_property: _reduce_cached_property,
        struct.Struct: _reduce_struct,
        threading.local: _reduce_local,
        contextvars.ContextVar: _reduce_context_variable,
        contextlib._GeneratorContextManager: _reduce_context_manager,  # noqa: SLF001  # it has no public name
    }
    if hasattr(typing, "TypeVarTuple"):  # of Python 3.11
        found[typing.TypeVarTuple] = _reduce_parameters
    return found


def _reduce_sentinel(sentinel: Any) -> Reduced:
    return getattr, (dataclasses, _SENTINELS[type(sentinel)])


def _reduce_new_type(new: Any) -> Reduced:
    module, path = home(new)
    if module != "__main__":
        return new.__reduce__()  # type: ignore[no-any-return]  # a name
    return _rebuilt, (_number(new), typing.NewType, path, new.__supertype__)


def is_called_typed_dict(value: Any) -> bool:
    """Tell whether a class was made by calling `TypedDict`; before Python 3.12 nothing tells its base."""
    return typing.is_typeddict(value) and not hasattr(value, "__orig_bases__")


def reduce_typed_dict(kind: Any) -> Reduced:
    """Return how to call `TypedDict` again."""
    make = functools.partial(_TYPED_DICT, total=kind.__total__)
    return _rebuilt, (_number(kind), make, kind.__name__, kind.__annotations__)


def _reduce_parameters(parameters: Any) -> Reduced:
    if parameters.__module__ != "__main__":
        return parameters.__reduce__()  # type: ignore[no-any-return]  # a name
    return _rebuilt, (_number(parameters), type(parameters), parameters.__name__)


def _number(value: Any) -> str:
    """Return what an object is known by wherever it goes, as cloudpickle's own type variables are."""
    return cloudpickle._get_or_create_tracker_id(value)  # type: ignore[no-any-return]  # noqa: SLF001  # no public door


def _rebuilt(number: str, make: Callable[..., Any], *arguments: Any) -> Any:
    """Make the object, or return it where it has been before."""
    made = make(*arguments)
    made.__module__ = "__main__"
    return cloudpickle._lookup_class_or_track(number, made)  # noqa: SLF001  # as above


def _reduce_struct(layout: struct.Struct) -> Reduced:
    return struct.Struct, (layout.format,)


def _reduce_cached_property(cached: functools.cached_property[Any]) -> Reduced:
    """Make one with a lock of its own, which it has before Python 3.12."""
    state = {name: value for name, value in vars(cached).items() if name != "lock"}
    return functools.cached_property, (cached.func,), state


def _reduce_local(local: threading.local) -> Reduced:
    """Make one in which the worker's main thread has what the notebook's has."""
    return threading.local, (), vars(local) or None


def _reduce_context_variable(variable: contextvars.ContextVar[Any]) -> Reduced:
    """Name a module's; of the notebook's own make one with its default, and its value in the main thread."""
    for module in [one for one in list(sys.modules.values()) if issubclass(type(one), ModuleType)]:
        name = next((name for name, value in list(vars(module).items()) if value is variable), None)
        if name is not None and module.__name__ != "__main__":
            return getattr, (module, name)
    default = contextvars.Context().run(_value_of, variable)
    return _context_variable, (variable.name, default), _value_of(variable), None, None, _set_context_variable


def _value_of(variable: contextvars.ContextVar[Any]) -> tuple[Any, ...]:
    """Return (value,), or () where a variable has none."""
    try:
        return (variable.get(),)
    except LookupError:
        return ()


def _context_variable(name: str, default: tuple[Any, ...]) -> contextvars.ContextVar[Any]:
    return contextvars.ContextVar(name, default=default[0]) if default else contextvars.ContextVar(name)


def _set_context_variable(variable: contextvars.ContextVar[Any], value: tuple[Any, ...]) -> None:
    if value:
        variable.set(value[0])


def _reduce_context_manager(manager: Any) -> Reduced:
    """Make one that nobody has entered anew; that is how it decorates a function."""
    if inspect.getgeneratorstate(manager.gen) != inspect.GEN_CREATED:
        return manager.__reduce_ex__(4)  # type: ignore[no-any-return]  # refused for its generator
    return type(manager), (manager.func, manager.args, manager.kwds)
