"""Values of names in a failure's frames, whatever their reprs do."""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from functools import partial

import pytest

from nbshm.worker import descriptions
from nbshm.worker.descriptions import Describer, describe


class Raising:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Waiting:
    def __init__(self, gate: threading.Event) -> None:
        self.gate = gate

    def __repr__(self) -> str:
        self.gate.wait(60)
        return "late"


class Huge(dict):
    def __repr__(self) -> str:
        raise AssertionError("the whole is written")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        ("a\nb", "'a\\nb'"),
        (Raising(), "<Raising whose repr raises RuntimeError>"),
        (list(range(1000)), "[0, 1, 2, 3, 4, 5, ...]"),
        (Huge.fromkeys(range(1000)), "<Huge of 1000>"),
    ],
)
def test_a_value_is_described_on_a_line(value, text):
    assert describe(value) == text


def test_long_values_are_cut_and_addresses_left_out():
    assert len(describe("x" * 10**7)) < 200
    assert len(describe(b"x" * 10**7)) < 200
    assert describe(object()) == "<object object>"


def test_an_array_tells_its_shape():
    numpy = pytest.importorskip("numpy")
    assert describe(numpy.zeros((2, 2))).startswith("(2, 2) float64 array([[0., 0.], [0., 0.]])")


def test_names_that_code_uses_are_described_but_not_modules_and_definitions():
    def working(count):
        import json

        names = [json, working, count]
        return sys._getframe(), names

    frame, _ = working(3)
    (values,) = Describer()([frame])
    assert dict(values).keys() == {"count", "names"}


class Formula:
    """What an `eval` may be given for its names: a mapping in nothing but what it answers."""

    def __init__(self, **values: object) -> None:
        self.values = values

    def __getitem__(self, name: str) -> object:
        return self.values[name]


@pytest.mark.parametrize("kind", [Formula, dict, partial(defaultdict, int)])
def test_the_names_of_an_eval_are_looked_up_in_what_it_was_given(kind):
    names = kind(known=2, innermost=lambda: sys._getframe(1))
    frame = eval("(known, missing) if False else innermost()", {}, names)  # noqa: S307  # the case
    assert Describer()([frame]) == [(("known", "2"),)]


def test_what_the_names_of_an_eval_raise_keeps_no_other_frame_from_being_described():
    class Refusing(Formula):
        def __getitem__(self, name: str) -> object:
            raise SystemExit(name) if name == "missing" else KeyError(name)

    def working(count):
        return sys._getframe(), count

    given = {"innermost": lambda: sys._getframe(1)}
    frame = eval("missing if False else innermost()", given, Refusing())  # noqa: S307  # the case
    assert Describer()([working(3)[0], frame]) == [(("count", "3"),), ()]


def test_a_value_that_lies_about_its_class_is_described():
    class Unbound:
        @property
        def __class__(self):
            raise RuntimeError("no object bound")

        def __repr__(self) -> str:
            return "<unbound>"

    def working(proxy):
        return sys._getframe(), proxy

    assert Describer()([working(Unbound())[0]]) == [(("proxy", "<unbound>"),)]


def test_a_slow_repr_does_not_hold_the_report_up(monkeypatch):
    monkeypatch.setattr(descriptions, "SECONDS", 0.2)
    gate = threading.Event()

    def working(quick, slow, after):
        return sys._getframe(), quick, slow, after

    begun = time.monotonic()
    describer = Describer()
    (values,) = describer([working(1, Waiting(gate), 2)[0]])
    again = describer([working(1, 2, 3)[0]])
    assert time.monotonic() - begun < 30
    gate.set()
    assert values == (("quick", "1"), ("slow", "..."))
    assert again == [()]
