"""Ranks, times and sizes in words."""

from __future__ import annotations

import pytest

from nbshm.words import (
    bytes_in_words,
    numbers_in_words,
    progress_in_words,
    ranks_in_words,
    seconds_in_words,
    verb_for,
)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([3], "3"),
        ([0, 1], "0-1"),
        ([0, 1, 2, 3], "0-3"),
        ([0, 1, 3], "0, 1, 3"),
        ([7, 3, 2, 1, 0], "0-3, 7"),
        ([0, 2, 4], "0, 2, 4"),
        ([5, 5, 6, 7, 9, 10], "5-7, 9, 10"),
    ],
)
def test_numbers_are_written_compactly(numbers: list[int], words: str) -> None:
    assert numbers_in_words(numbers) == words


def test_one_rank_is_a_rank() -> None:
    assert ranks_in_words([2]) == "rank 2"
    assert ranks_in_words([2, 4]) == "ranks 2, 4"
    assert verb_for([2], "was", "were") == "was"
    assert verb_for([2, 4], "was", "were") == "were"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (2.46, "2.5 s"),
        (9.96, "10.0 s"),
        (41.2, "41 s"),
        (59.6, "1 min 0 s"),
        (125, "2 min 5 s"),
    ],
)
def test_short_times_are_written_in_seconds_and_minutes(seconds: float, words: str) -> None:
    assert seconds_in_words(seconds) == words


def test_long_times_are_written_in_hours() -> None:
    assert seconds_in_words(3600 * 3 + 600) == "3 h 10 min"


@pytest.mark.parametrize(
    ("nbytes", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (3 << 29, "1.5 GiB"), (5 << 50, "5120.0 TiB")],
)
def test_sizes_are_written_in_binary_units(nbytes: int, words: str) -> None:
    assert bytes_in_words(nbytes) == words


def test_progress_names_its_loop_and_its_end_where_that_is_known() -> None:
    assert progress_in_words("fits", 3, 10) == "fits 3/10"
    assert progress_in_words("", 3, None) == "3"
