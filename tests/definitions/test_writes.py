from __future__ import annotations

import ast

import pytest

from nbshm.definitions.writes import written_names


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("x[0] = 1", {"x"}),
        ("x[0] += 1", {"x"}),
        ("del x[0]", {"x"}),
        ("for i in y:\n    x.append(i)", {"x"}),
        ("frame.loc[0, 'a'] = 1", {"frame"}),
        ("def f():\n    x['k'] = 1", {"x"}),
        ("x['a'][0] = 1", set()),
        ("x.count(1); y = x[0]", set()),
        ("x.grad[0] = 1", set()),
    ],
)
def test_names_whose_values_are_written_into_are_found(source: str, names: set[str]) -> None:
    assert written_names(ast.parse(source)) == names
