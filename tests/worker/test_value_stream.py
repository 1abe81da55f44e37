"""The stream of values: read on behind what can't be rebuilt."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict, deque
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import cloudpickle
import pytest

from nbshm.worker.value_stream import CannotRebuild, ValueStream


class Row(NamedTuple):
    number: int


class Sour:
    """An object that can't be unpickled; what it holds is pickled behind it, as arguments or as its state."""

    def __init__(self, *arguments: Any, state: Any = None) -> None:
        self.arguments = arguments
        self.state = state

    def __reduce__(self) -> Any:
        return sour, self.arguments, self.state


def sour(*_: Any) -> None:
    raise RuntimeError("sour since Monday.")


def stream(*values: Any) -> ValueStream:
    file = io.BytesIO()
    pickler = pickle.Pickler(file, protocol=5)
    for value in values:
        pickler.dump([])
        pickler.dump(value)
    file.seek(0)
    return ValueStream(file)


def after_a_failure(failing: Any, *values: Any) -> list[Any]:
    """Return what is read behind a value that can't be rebuilt."""
    read = stream(failing, *values)
    with pytest.raises(CannotRebuild):
        read.load("failing")
    return [read.load("value") for _ in values]


def test_values_come_in_order_and_with_one_memo() -> None:
    shared = [1]
    read = stream(shared, {"a": shared}, (shared, 2))
    first, second, third = (read.load("value") for _ in range(3))
    assert second["a"] is first
    assert third == (first, 2)
    assert third[0] is first


def test_a_value_that_cant_be_rebuilt_is_told_by_its_label_with_the_reason() -> None:
    words = (
        "'x' can't be rebuilt in another process: RuntimeError: sour since Monday. "
        "Make it where it is used, or mend how its class is unpickled."
    )
    with pytest.raises(CannotRebuild) as caught:
        stream(Sour()).load("x")
    assert str(caught.value) == words
    assert caught.traceback[-1].name == "sour"
    assert isinstance(caught.value.__context__, RuntimeError)


def test_what_follows_such_a_value_is_read() -> None:
    values = [Fraction(1, 3), "text", [b"x" * 100_000, {1: 2}]]
    assert after_a_failure([Sour()], *values) == values


def test_several_such_values_may_follow_each_other() -> None:
    read = stream(1, Sour(), Sour(), 2, [Sour()], SimpleNamespace(a=3))
    assert read.load("value") == 1
    for expected in (None, None, 2, None, SimpleNamespace(a=3)):
        if expected is None:
            with pytest.raises(CannotRebuild):
                read.load("sour")
        else:
            assert read.load("value") == expected


def test_names_texts_and_containers_that_come_first_in_such_a_value_are_there_for_the_next() -> None:
    text, row = "a text", [1, "one", (2, 3)]
    failing = Sour(state=[Fraction(1, 2), text, row])
    assert after_a_failure(failing, Fraction(2, 3), text, row) == [Fraction(2, 3), text, row]


def test_what_was_read_before_stays_one_object() -> None:
    shared = Fraction(1, 3)
    read = stream(shared, [Sour(), shared], {"a": shared})
    first = read.load("value")
    with pytest.raises(CannotRebuild):
        read.load("sour")
    assert read.load("value")["a"] is first


def test_an_object_that_only_such_a_value_would_have_made_says_so_where_it_is_used() -> None:
    part = SimpleNamespace(a=1)
    (held,) = after_a_failure(Sour(state=part), {"part": part})
    with pytest.raises(NameError, match="'failing' can't be rebuilt in another process: RuntimeError: sour"):
        held["part"].a  # noqa: B018  # the use


@pytest.mark.parametrize(
    "part",
    [partial(int, base=2), OrderedDict(a=1), deque([1]), {Fraction(1, 2)}, "".join, Row(1), type(Row(1))],
)
def test_whatever_such_a_value_holds_is_passed_over(part: Any) -> None:
    assert after_a_failure([Sour(), part, [part]], "next") == ["next"]


def test_classes_that_travel_by_value_are_passed_over() -> None:
    made_here = type("MadeHere", (list,), {"__module__": "nowhere"})
    file = io.BytesIO()
    pickler = cloudpickle.Pickler(file)
    for value in ([], [Sour(), made_here([1]), made_here([1, 2])], [], "next"):
        pickler.dump(value)
    file.seek(0)
    read = ValueStream(file)
    with pytest.raises(CannotRebuild):
        read.load("failing")
    assert read.load("value") == "next"


def test_nothing_runs_twice() -> None:
    made.clear()
    after_a_failure([Made(), Sour(), Made()], 1)
    assert made == ["made"]


made: list[str] = []


class Made:
    def __reduce__(self) -> Any:
        return make, ()


def make() -> None:
    made.append("made")
