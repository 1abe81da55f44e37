"""Exceptions pickled by what they have, where their classes can't be called with their `args`.

An exception's own way is `type(e)(*e.args)`. An `__init__` that takes other arguments than it hands on makes
that fail, or makes another message of the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

from nbshm.attributes import slots

_NATIVE = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType)
_OF_SYSTEM = ("errno", "strerror", "filename", "filename2")
_WAYS_OF_PICKLING = ("__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__")


def reduce_exception(exception: BaseException) -> Any:
    """Return how an exception is pickled whose class has an `__init__` or a `__new__` in Python.

    NotImplemented for any other, and where the class itself says how.
    """
    kind = type(exception)
    if any(_is_in_python(kind, name) for name in _WAYS_OF_PICKLING):
        return NotImplemented
    is_made_in_python = _is_in_python(kind, "__init__") or _is_in_python(kind, "__new__")
    return reduce_without_init(exception) if is_made_in_python else NotImplemented


def reduce_without_init(exception: BaseException) -> tuple[Any, ...]:
    """Return a reduction that calls nothing of the exception's class when it is undone."""
    kind = type(exception)
    _, args, *state = _native(kind, "__reduce__")(exception)
    attributes = {**dict(_left_out(exception)), **(state[0] if state else {})}
    return remade, (kind, args), attributes or None, None, None, set_attributes


def remade(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """Make an exception as the builtin class that its class derives from does."""
    exception: BaseException = _native(kind, "__new__")(kind, *args)
    _native(kind, "__init__")(exception, *args)
    return exception


def set_attributes(exception: BaseException, attributes: dict[str, Any]) -> None:
    """Give an exception its attributes, also one of a frozen dataclass."""
    for name, value in attributes.items():
        object.__setattr__(exception, name, value)


def _is_in_python(kind: type, name: str) -> bool:
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    return found is not None and not isinstance(found, _NATIVE)


def _native(kind: type, name: str) -> Any:
    """Return what the first class in C among those that a class derives from has of that name."""
    return next(found for base in kind.__mro__ if isinstance(found := vars(base).get(name), _NATIVE))


def _left_out(exception: BaseException) -> Iterator[tuple[str, Any]]:
    """Yield what exceptions leave out when they are pickled: slots, and what an OSError was given later."""
    yield from slots(exception)
    if isinstance(exception, OSError):
        of_system = ((name, vars(OSError)[name].__get__(exception)) for name in _OF_SYSTEM)
        yield from (each for each in of_system if each[1] is not None)  # it would be told as a file's name
