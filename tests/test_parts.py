"""What values consist of, and the paths there."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from nbshm.parts import parts, places, steps_to


class Slotted:
    __slots__ = ("__secret", "array", "unset")

    def __init__(self, array: object) -> None:
        self.array = self.__secret = array


class WithoutWords:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


class Unhashable(type):
    __hash__ = None


class Odd(metaclass=Unhashable):
    pass


def test_slots_that_have_been_set_are_parts() -> None:
    held = [1]
    assert list(parts(Slotted(held))) == [("._Slotted__secret", held), (".array", held)]


def test_each_object_is_met_once_by_the_path_of_the_fewest_steps() -> None:
    held = [1]
    found = [(path, value) for path, value in places({"a": [held], "b": held}) if value is held]
    assert found == [("b", held)]


@pytest.mark.parametrize("value", [{WithoutWords(): 1}, Odd()], ids=["its key", "its class"])
def test_a_value_that_raises_instead_of_telling_its_parts_has_none(value: object) -> None:
    held = [1]
    assert steps_to(held, [value, held]) == "[1]"


def test_a_great_many_objects_are_not_all_looked_at() -> None:
    last = [1]
    assert steps_to(last, [SimpleNamespace(number=number) for number in range(300_000)] + [last]) == ""


def test_the_way_is_nothing_where_there_is_none() -> None:
    held = [1]
    assert steps_to(held, {"a": [(0, held)]}) == "['a'][0][1]"
    assert steps_to(held, {"a": [(0, [1])]}) == ""
