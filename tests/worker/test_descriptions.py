"""Values of names in a failure's frames, whatever their reprs do."""

from __future__ import annotations

import sys
import threading
import time

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
