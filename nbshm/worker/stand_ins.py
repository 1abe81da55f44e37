"""What stands in a child process for names of the notebook that are not there, and says so when it is used.

Most tasks that name them can be unpickled, and can do what needs none of them: whether a name is that of a
function or of a class is not known of what the notebook got later, and an instance is mostly made without a
call of its class. So both raise when they are called, instances when they are used, and all else at any use.
"""

from __future__ import annotations

from typing import Any, NoReturn

_USES = (
    "__bool__",
    "__len__",
    "__iter__",
    "__next__",
    "__contains__",
    "__getitem__",
    "__enter__",
    "__exit__",
    "__aenter__",
    "__aexit__",
    "__aiter__",
    "__anext__",
    "__await__",
    "__add__",
    "__radd__",
    "__sub__",
    "__rsub__",
    "__mul__",
    "__rmul__",
    "__truediv__",
    "__rtruediv__",
    "__floordiv__",
    "__rfloordiv__",
    "__mod__",
    "__rmod__",
    "__pow__",
    "__rpow__",
    "__and__",
    "__rand__",
    "__or__",
    "__ror__",
    "__xor__",
    "__rxor__",
    "__matmul__",
    "__rmatmul__",
    "__neg__",
    "__pos__",
    "__abs__",
    "__invert__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
    "__delitem__",
    "__reversed__",
    "__int__",
    "__float__",
    "__index__",
    "__str__",
    "__format__",
    "__fspath__",
    "__array__",
    "__reduce_ex__",
)


def stand_in(sentence: str, *, is_class: bool) -> Any:
    """Return an object that raises a NameError with that sentence when it is used."""
    kind: Any = _StandInType("missing", (_Missing,), {"_sentence": sentence})
    return kind if is_class else object.__new__(kind)


def failing(error: Exception) -> Any:
    """Return an object that raises that error when it is used."""
    kind: Any = _StandInType("missing", (_Missing,), {"_sentence": str(error), "_error": error})
    return object.__new__(kind)


def unknown(name: str) -> Any:
    """Return what a module has for a name that nobody gave it, as its `__getattr__`."""
    if name.startswith("_"):
        raise AttributeError(f"module '__main__' has no attribute {name!r}")
    sentence = f"{name!r} is not in this process, which was started before the notebook defined it. "
    return stand_in(f"{sentence}Make the pool, or the process, after the definition.", is_class=True)


def _refuse(self: Any, *_: Any) -> NoReturn:
    raise self._error or NameError(self._sentence)


class _StandInType(type):
    """What stands for a function or a class: the function would do something, and the class as well."""

    _sentence: str
    _error: Exception | None

    def __call__(cls, *_: Any, **__: Any) -> NoReturn:
        _refuse(cls)

    def __instancecheck__(cls, _: object) -> NoReturn:
        _refuse(cls)

    def __subclasscheck__(cls, _: type) -> NoReturn:
        _refuse(cls)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(cls._sentence, is_class=True)


class _Missing(metaclass=_StandInType):
    """An object that is not here."""

    _sentence = ""
    _error: Exception | None = None

    def __new__(cls: Any, *_: Any, **__: Any) -> Any:
        """Make an instance as unpickling makes one, with whatever arguments."""
        return object.__new__(cls)

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        _refuse(self)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        _refuse(self)

    def __setstate__(self, _: Any) -> None:
        """Take any state: it is never looked at."""

    def __setitem__(self, _: Any, __: Any) -> None:
        """Take any item, as unpickling a kind of dict gives them."""

    def append(self, _: Any) -> None:
        """Take any item, as unpickling a kind of list gives it."""

    def extend(self, _: Any) -> None:
        """Take any items, as unpickling a kind of list gives them."""

    def __repr__(self) -> str:
        return f"<missing: {self._sentence}>"


for _name in _USES:
    setattr(_Missing, _name, _refuse)
