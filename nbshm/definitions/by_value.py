"""Functions that have no importable home travel by value: code, defaults, closure and attributes.

cloudpickle rebuilds such a function with globals of its own. In a notebook all functions share one namespace,
the notebook's, and they must share the worker's `__main__` there: one that is rebuilt here reads and writes
the same globals as those that were lifted. And cloudpickle would forget which cell the code came from.
"""

from __future__ import annotations

import copyreg
import functools
import marshal
import sys
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, MappingProxyType
from typing import Any, TypeAlias, cast

from cloudpickle import cloudpickle

from nbshm.attributes import attribute, found_at
from nbshm.definitions.standard_objects import is_called_typed_dict, reduce_typed_dict
from nbshm.own_definitions import is_modules_own

Reduced: TypeAlias = tuple[Any, ...]


def reduce_function(function: FunctionType) -> Reduced:
    """Return how to rebuild a function whose globals are the notebook's."""
    attributes = {
        "__qualname__": function.__qualname__,
        "__module__": function.__module__,
        "__defaults__": function.__defaults__,
        "__kwdefaults__": function.__kwdefaults__,
        "__annotations__": function.__annotations__,
        "__doc__": function.__doc__,
    }
    return (
        rebuild_function,
        (function.__code__, function.__name__, function.__closure__),
        (attributes, function.__dict__),
        None,
        None,
        set_function_state,
    )


def reduce_code(code: CodeType) -> Reduced:
    """Return how to rebuild code under its file name, so that tracebacks find their lines."""
    return marshal.loads, (marshal.dumps(code),)


def reduce_cell(cell: CellType) -> Reduced:
    """Return how to rebuild a variable of a closure, which is one object for all functions that share it.

    Its content comes later: it may be a function that has the cell. It may be None, which by itself would
    not be put there.
    """
    try:
        return CellType, (), (cell.cell_contents,), None, None, set_cell
    except ValueError:  # it is empty
        return CellType, ()


def set_cell(cell: CellType, content: tuple[Any]) -> None:
    """Fill a cell."""
    (cell.cell_contents,) = content


def rebuild_function(code: CodeType, name: str, closure: tuple[CellType, ...] | None) -> FunctionType:
    """Make the function as one of the worker's `__main__`."""
    return FunctionType(code, vars(sys.modules["__main__"]), name, None, closure)


def set_function_state(function: FunctionType, state: tuple[Any, ...]) -> None:
    """Fill in what was pickled after the function itself."""
    attributes, dictionary = state
    for name, value in attributes.items():
        setattr(function, name, value)
    function.__dict__.update(dictionary)


def known_classes() -> dict[type, str]:
    """Return the classes that have travelled by value so far, with the names that cloudpickle gives them."""
    return dict(cloudpickle._DYNAMIC_CLASS_TRACKER_BY_CLASS)  # noqa: SLF001  # it has no public door


def known_class(name: str) -> type:
    """Return the class that travelled under that name, where it came from or where it went."""
    kind: type = cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID[name]  # noqa: SLF001  # as above
    return kind


def reduce_by_name(definition: Any, path: str) -> Reduced | str:
    """Return how to find in the receiver's `__main__` what is there under that name.

    By the name alone pickle looks for it where its `__module__` says.
    """
    return path if attribute(definition, "__module__") == "__main__" else (_found_in_main, (path,))


def _found_in_main(path: str) -> Any:
    return found_at(path, vars(sys.modules["__main__"]))


def reduce_product(value: Any) -> Any:
    """Return how to rebuild what a library has made for the notebook; NotImplemented for all else.

    What a module has under its name is that module's, and pickle finds it there.
    """
    reduce = _way_of(value)
    return NotImplemented if reduce is None or is_modules_own(value) else reduce(value)


def _way_of(value: Any) -> Callable[[Any], Reduced | str] | None:
    """Return what reduces such a product; what a value is, its type says: `__class__` may say anything."""
    kind = type(value)
    if kind is FunctionType:
        if value.__code__ is _CODE_OF_GENERIC:
            return _reduce_generic
        return _reduce_compiled if _is_compiled(value) else None
    if kind is functools._lru_cache_wrapper:  # noqa: SLF001  # the type has no public name
        return _reduce_cached
    if kind is attribute(sys.modules.get("numpy"), "vectorize"):
        return _reduce_vectorized
    return reduce_typed_dict if issubclass(kind, type) and is_called_typed_dict(value) else None


def is_generic(value: Any) -> bool:
    """Tell whether others register with a function: `functools.singledispatch` made it, or one inside it."""
    return isinstance(value, FunctionType) and isinstance(vars(value).get("registry"), MappingProxyType)


def _reduce_generic(function: Any) -> Reduced:
    """Return how to rebuild a generic function with all that was registered for it."""
    registry = dict(function.registry)
    own = {name: value for name, value in vars(function).items() if name not in vars(_example)}
    return functools.singledispatch, (registry.pop(object),), (registry, own), None, None, _register


@functools.singledispatch
def _example(_: Any) -> None:
    """Show which attributes `singledispatch` gives to a function."""


_CODE_OF_GENERIC = cast("FunctionType", _example).__code__  # that of all generic functions


def _register(function: Any, state: tuple[dict[Any, Any], dict[str, Any]]) -> None:
    registry, own = state
    for kind, implementation in registry.items():
        function.register(kind, implementation)
    vars(function).update(own)


def _reduce_cached(function: Any) -> Reduced:
    """Return how to rebuild a cached function, which pickles by its name alone; its cache begins empty."""
    parameters = function.cache_parameters()
    arguments = (function.__wrapped__, parameters["maxsize"], parameters["typed"])
    own = {
        name: value
        for name, value in vars(function).items()
        if name not in {"__wrapped__", "cache_parameters"}
    }
    return _cached, arguments, own, None, None, _update


def _cached(function: Any, maxsize: int | None, typed: bool) -> Any:  # noqa: FBT001  # as lru_cache takes it
    return functools.lru_cache(maxsize=maxsize, typed=typed)(function)


def _update(function: Any, own: dict[str, Any]) -> None:
    vars(function).update(own)


def _reduce_vectorized(function: Any) -> Reduced:
    """Return how to rebuild what `numpy.vectorize` made; the ufuncs that its calls have made can't travel."""
    state = vars(function)
    return copyreg.__newobj__, (type(function),), {**state, "_ufunc": type(state["_ufunc"])()}  # type: ignore[attr-defined]


def _is_compiled(function: FunctionType) -> bool:
    """Tell whether `torch.compile` made a function, not one that has taken its attributes over."""
    is_of_dynamo = function.__globals__.get("__name__") == "torch._dynamo.eval_frame"
    return is_of_dynamo and "_torchdynamo_orig_callable" in vars(function)


def _reduce_compiled(function: Any) -> Reduced:
    """Return how to rebuild what `torch.compile` made of a function, as torch does with a compiled module.

    What has been set up to compile it is in the closure alone.
    """
    closure = dict(zip(function.__code__.co_freevars, function.__closure__, strict=True))
    return _called, (closure["self"].cell_contents, function._torchdynamo_orig_callable)  # noqa: SLF001  # as above


def _called(make: Any, function: Any) -> Any:
    return make(function)
