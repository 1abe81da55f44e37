from __future__ import annotations

from nbshm.results import Results


class Unwilling:
    def __repr__(self) -> str:
        raise ValueError


def test_short_results_are_a_list() -> None:
    assert repr(Results([1, 2])) == "[1, 2]"


def test_long_results_go_by_rank() -> None:
    assert repr(Results(["x" * 50, "y" * 50])) == f"[rank 0] {'x' * 50!r}\n[rank 1] {'y' * 50!r}"


def test_a_value_that_can_not_be_shown_hides_no_other() -> None:
    assert repr(Results([1, Unwilling()])) == "[1, <Unwilling whose repr raises ValueError>]"
