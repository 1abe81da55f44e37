"""The list of results is a list that reads well."""

from __future__ import annotations

import pickle

from IPython.lib.pretty import pretty

from nbshm.results import Results


def test_results_are_a_list() -> None:
    results = Results([0, 1, 4])
    assert results == [0, 1, 4]
    assert isinstance(results, list)
    assert results[1:] == [1, 4]
    assert pickle.loads(pickle.dumps(results)) == results


def test_short_results_are_one_line() -> None:
    assert repr(Results([0, "a", None])) == "[0, 'a', None]"
    assert repr(Results()) == "[]"


def test_long_results_go_by_rank() -> None:
    assert repr(Results(["a" * 40, "b" * 40])) == f"[rank 0] {'a' * 40!r}\n[rank 1] {'b' * 40!r}"


class Table:
    def __repr__(self) -> str:
        return "1 2\n3 4"


def test_values_of_several_lines_stay_aligned() -> None:
    assert repr(Results([Table(), 1])) == "[rank 0] 1 2\n         3 4\n[rank 1] 1"


def test_the_notebook_shows_the_same() -> None:
    results = Results([Table(), 1])
    assert pretty(results) == repr(results)
