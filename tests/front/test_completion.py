"""What Tab offers after the magics."""

from __future__ import annotations

import pytest

from nbshm.front.completion import Suggestions, suggest
from nbshm.option_table import OPTIONS

NAMES = ["table", "total", "_hidden", "model"]


def offered(line: str) -> tuple[str, ...]:
    suggestions = suggest(line, NAMES)
    assert suggestions is not None
    return suggestions.texts


def test_all_options_are_offered_after_the_magic() -> None:
    assert offered("%%parallel ") == tuple(f"{option.name}=" for option in OPTIONS if option.cell)


def test_options_that_are_given_are_not_offered_again() -> None:
    assert "nprocs=" not in offered("%%parallel nprocs=2 ")
    assert offered("%%parallel nprocs=2 s") == ("start_method=", "send=", "seed=")


def test_only_options_of_the_session_are_offered_as_defaults() -> None:
    assert offered("%parallel s") == ("start_method=", "standby=")


def test_options_of_the_session_alone_are_not_offered_for_a_cell() -> None:
    assert offered("%%parallel sta") == ("start_method=",)


@pytest.mark.parametrize(
    ("line", "suggestions"),
    [
        ("%%parallel start_method=", Suggestions(typed="", texts=("forkserver", "spawn", "fork"))),
        ("%%parallel nprocs=2 start_method=f", Suggestions(typed="f", texts=("forkserver", "fork"))),
        ("%%parallel send=t", Suggestions(typed="t", texts=("table", "total"))),
        ("%%parallel send=table,t", Suggestions(typed="t", texts=("total",))),
        ("%%parallel out=", Suggestions(typed="", texts=("model", "table", "total"))),
        ("%%parallel nonsense=", Suggestions(typed="", texts=())),
        ("%parallel out=", Suggestions(typed="", texts=())),
    ],
)
def test_values_are_offered_after_an_option(line: str, suggestions: Suggestions) -> None:
    assert suggest(line, NAMES) == suggestions


def test_words_are_offered_after_the_magics_that_take_one() -> None:
    assert suggest("%shm_status ", NAMES) == Suggestions(typed="", texts=("clean",))
    strategies = Suggestions(typed="file_s", texts=("file_system",))
    assert suggest("%shm_strategy file_s", NAMES) == strategies


@pytest.mark.parametrize(
    "line",
    [
        "",
        "%shm_status",
        "%shm_status clean now",
        "%%parallel",
        "%%parallels ",
        "x = 1",
        "parallel ",
        "%%time ",
    ],
)
def test_other_lines_are_left_alone(line: str) -> None:
    assert suggest(line, NAMES) is None
