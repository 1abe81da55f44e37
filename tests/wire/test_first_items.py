from __future__ import annotations

from nbshm.wire.first_items import COUNT, FirstItem, FirstItems


def test_the_first_that_has_an_item_is_remembered():
    first = FirstItems.unpack(b"")
    assert first.meet(3, FirstItem.of(1, "a")) is None
    assert first.meet(3, FirstItem.of(0, "a")) is None
    assert first.meet(3, FirstItem.of(0, "b")) == FirstItem.of(1, "a")
    assert first.meet(4, FirstItem.of(0, "b")) is None


def test_the_state_survives_the_board():
    first = FirstItems()
    for position in range(0, COUNT, 2):
        first.meet(position, FirstItem.of(position, f"item {position}"))
    assert FirstItems.unpack(first.pack()) == first
    assert len(first.pack()) == FirstItems.size()


def test_long_texts_are_told_apart_to_their_end():
    first = FirstItems()
    first.meet(0, FirstItem.of(0, "é" * 100))
    first = FirstItems.unpack(first.pack())
    assert first.meet(0, FirstItem.of(1, "é" * 100)) is None
    other = first.meet(0, FirstItem.of(1, "é" * 99))
    assert other is not None
    assert other.text == "é" * 20


def test_a_text_of_anything_has_its_place():
    first = FirstItems()
    first.meet(0, FirstItem.of(0, "\ud800"))
    assert first.pack()
