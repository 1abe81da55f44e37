"""Exceptions by what they have: they come back as they are, whatever their `__init__` takes."""

from __future__ import annotations

import builtins
import copyreg
import io
import pickle
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from nbshm.memory.picklers import PlainPickler
from nbshm.remade_exceptions import reduce_exception

INITS = []


class ApiError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        INITS.append(code)


class PrefixedError(Exception):
    def __init__(self, message):
        super().__init__(f"sorry: {message}")


class NamedError(Exception):
    def __init__(self, *, name):
        self.name = name

    def __str__(self):
        return f"no {self.name}"


class SlottedError(Exception):
    __slots__ = ("__secret", "code", "unset")

    def __init__(self, code, secret):
        super().__init__()
        self.code = code
        self.__secret = secret

    @property
    def secret(self):
        return self.__secret


class NoFileError(OSError):
    def __init__(self, path):
        super().__init__(2, "nothing there", path)


class LostFileError(OSError):
    def __init__(self, message, path):
        super().__init__(message)
        self.errno, self.strerror, self.filename = 2, message, path


@dataclass(frozen=True)
class FrozenError(Exception):
    code: int


class NoModuleError(ImportError):
    def __init__(self, module):
        super().__init__("not installed", name=module)


class MadeError(ValueError):
    def __new__(cls, number, unit):
        return super().__new__(cls, f"{number} {unit}")

    def __init__(self, number, unit):
        super().__init__(f"{number} {unit}")


class Mixin:
    pass


class SeveralError(Mixin, KeyError, AttributeError):
    def __init__(self, key, holder):
        super().__init__(key)
        self.holder = holder


class OwnWayError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code

    def __reduce__(self):
        return type(self), (self.code, f"{self.args[0]} again")


class RegisteredError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def there_and_back(value: Any) -> Any:
    pickler = PlainPickler(reference=lambda _: NotImplemented, file=io.BytesIO())
    pickler.dump(value)
    return pickle.loads(pickler.stream)


@pytest.mark.parametrize(
    "error",
    [
        ApiError(404, "no"),
        PrefixedError("it broke"),
        NamedError(name="disk"),
        MadeError(3, "m"),
        SeveralError("key", "holder"),
        FrozenError(5),
    ],
    ids=repr,
)
def test_an_exception_comes_back_with_its_message_and_attributes(error) -> None:
    vars(error)["extra"] = [1]
    back = there_and_back({"error": error})["error"]
    assert type(back) is type(error)
    assert (back.args, vars(back), str(back)) == (error.args, vars(error), str(error))


def test_what_the_builtin_class_keeps_comes_back() -> None:
    back = there_and_back(NoFileError("a.txt"))
    assert (back.errno, back.strerror, back.filename) == (2, "nothing there", "a.txt")
    lost = there_and_back(LostFileError("lost", "b.txt"))
    assert (lost.errno, str(lost), lost.filename2) == (2, "[Errno 2] lost: 'b.txt'", None)
    assert there_and_back(NoModuleError("jax")).name == "jax"


def test_slots_come_back() -> None:
    back = there_and_back(SlottedError(5, "s"))
    assert (back.code, back.secret, hasattr(back, "unset")) == (5, "s", False)


def test_no_init_runs() -> None:
    error = ApiError(404, "no")
    INITS.clear()
    there_and_back(error)
    assert INITS == []


def test_an_exception_that_leads_to_itself_comes_back_as_one() -> None:
    error = ApiError(404, "no")
    error.itself = [error]
    back = there_and_back(error)
    assert back.itself[0] is back


@pytest.mark.skipif(sys.version_info < (3, 11), reason="groups came with Python 3.11")
def test_a_group_of_them_comes_back() -> None:
    back = there_and_back(builtins.ExceptionGroup("both", [ApiError(1, "a"), ValueError("b")]))
    assert [str(member) for member in back.exceptions] == ["a", "b"]
    assert back.exceptions[0].code == 1


def test_classes_that_say_how_they_are_pickled_keep_their_way(monkeypatch) -> None:
    assert there_and_back(OwnWayError(1, "no")).args == ("no again",)
    monkeypatch.setitem(
        copyreg.dispatch_table, RegisteredError, lambda error: (RegisteredError, (error.code, "mine"))
    )
    assert there_and_back(RegisteredError(1, "no")).args == ("mine",)


@pytest.mark.parametrize(
    "error", [ValueError("x"), OSError(2, "no", "f"), KeyError("k"), OwnWayError(1, "no")]
)
def test_others_are_left_to_pickle_itself(error) -> None:
    assert reduce_exception(error) is NotImplemented
