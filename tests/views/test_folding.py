"""What ranks have in common is told once, by what was said alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nbshm.views.excerpt import Text
from nbshm.views.folding import Entry, fold


def entries(words: str) -> list[Entry]:
    return [Entry(voice="stdout", piece=Text(text=word)) for word in words.split()]


def told(**stories: str) -> list[tuple[tuple[int, ...], str]]:
    by_rank = {int(name[1:]): entries(words) for name, words in stories.items()}
    return [(passage.ranks, passage.entry.piece.text) for passage in fold(by_rank)]


def test_ranks_that_say_the_same_are_told_once() -> None:
    assert told(r0="a b", r1="a b", r2="a b") == [((0, 1, 2), "a"), ((0, 1, 2), "b")]


def test_a_common_beginning_and_end_enclose_what_differs() -> None:
    assert told(r0="load x0 done", r1="load x1 done") == [
        ((0, 1), "load"),
        ((0,), "x0"),
        ((1,), "x1"),
        ((0, 1), "done"),
    ]


def test_ranks_that_go_on_alike_are_folded_between() -> None:
    assert told(r0="a x", r1="a y", r2="a x", r3="a y z") == [
        ((0, 1, 2, 3), "a"),
        ((0, 2), "x"),
        ((1, 3), "y"),
        ((3,), "z"),
    ]


def test_silent_ranks_do_not_keep_others_from_folding() -> None:
    assert told(r0="", r1="a", r2="a") == [((1, 2), "a")]


def test_nothing_is_told_of_nothing() -> None:
    assert told(r0="", r1="") == []


STORIES = st.dictionaries(st.integers(0, 5), st.lists(st.sampled_from("abc"), max_size=6), max_size=5)


@given(STORIES)
def test_each_ranks_story_is_whole_and_in_order(stories: dict[int, list[str]]) -> None:
    passages = list(fold({rank: entries(" ".join(words)) for rank, words in stories.items()}))
    for rank, words in stories.items():
        assert [passage.entry.piece.text for passage in passages if rank in passage.ranks] == words
