from __future__ import annotations

import pytest

from nbshm.wire.markers import Merger, mark, split_at_marks

TOKEN = "c0ffee"  # noqa: S105  # it marks, and keeps no secret


def test_text_without_marks_is_one_piece():
    assert split_at_marks(b"a\nb", TOKEN) == ([b"a\nb"], b"")


def test_text_is_split_at_its_marks():
    text = b"a" + mark(TOKEN, 0) + mark(TOKEN, 1) + b"b"
    assert split_at_marks(text, TOKEN) == ([b"a", 0, 1, b"b"], b"")


def test_a_mark_of_another_run_is_text():
    text = b"a" + mark("other", 0) + b"b"
    assert split_at_marks(text, TOKEN) == ([text], b"")


@pytest.mark.parametrize("cut", range(1, len(mark(TOKEN, 12))))
def test_the_beginning_of_a_mark_is_kept_for_later(cut):
    begun = mark(TOKEN, 12)[:cut]
    assert split_at_marks(b"a" + begun, TOKEN) == ([b"a"], begun)


def merged(*steps):
    merger: Merger[str] = Merger(TOKEN)
    told = []
    for step in steps:
        told += merger.text(step) if isinstance(step, bytes) else merger.event(step)
    return told, list(merger.finish())


def test_an_event_stands_where_its_mark_is_whichever_comes_first():
    text = b"a" + mark(TOKEN, 0) + b"b"
    assert merged(text, "shown") == ([b"a", "shown", b"b"], [])
    assert merged("shown", text) == ([b"a", "shown", b"b"], [])


def test_text_in_any_chunks_gives_the_same_order():
    text = b"a" + mark(TOKEN, 0) + b"b" + mark(TOKEN, 1)
    for size in range(1, len(text)):
        chunks = [text[start : start + size] for start in range(0, len(text), size)]
        told, rest = merged(*chunks, "first", "second")
        joined = b"|".join(piece if isinstance(piece, bytes) else piece.encode() for piece in told)
        assert (joined.replace(b"|", b""), rest) == (b"afirstbsecond", [])


def test_text_after_a_mark_waits_for_the_event():
    assert merged(mark(TOKEN, 0) + b"later") == ([], [b"later"])


def test_an_event_whose_mark_was_lost_is_told_before_the_next_one():
    assert merged("first", "second", mark(TOKEN, 1)) == (["first", "second"], [])


def test_an_event_whose_mark_never_came_is_told_at_the_end():
    assert merged(b"a", "shown") == ([b"a"], ["shown"])


def test_what_only_looked_like_a_mark_is_told_at_the_end():
    assert merged(b"a\x1b_") == ([b"a"], [b"\x1b_"])


def test_events_are_told_once_when_a_mark_has_no_event():
    assert merged("first", mark(TOKEN, 0) + b"a" + mark(TOKEN, 1) + b"b") == (["first", b"a"], [b"b"])
