"""Where the body of a parallel cell lies in its cell, and which number a cell has."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from nbshm.notebook.cell_numbers import cell_numbers
from nbshm.notebook.cells import line_of_body


@pytest.mark.parametrize(
    ("cell", "source", "line"),
    [
        ("%%parallel nprocs=2\nx = 1", "x = 1\n", 2),
        ("%%parallel\nx = 1\ny = 2\n", "x = 1\ny = 2\n", 2),
        ("%%time\n%%parallel nprocs=2\nx = 1", "x = 1\n", 3),
        ("\n\n%%parallel nprocs=2\nx = 1", "x = 1\n", 4),
        ("%%parallel\n\n\nx = 1\n\n", "\n\nx = 1\n\n", 2),
        ("%%parallel\nx = 1", "y = 1", None),
        ("x = 1", "x = 1", None),
        ("magic('''\nx = 1", "x = 1", None),
        ("", "x = 1", None),
    ],
)
def test_the_first_line_of_the_body_is_found(cell: str, source: str, line: int | None) -> None:
    assert line_of_body(cell, source) == line


def test_cells_have_numbers_where_the_compiler_forgets_them():
    hooks = []
    shell = SimpleNamespace(
        compile=SimpleNamespace(get_code_name=lambda raw, transformed, _: f"{raw} {transformed}"),
        events=SimpleNamespace(
            register=lambda _, hook: hooks.append(hook), unregister=lambda _, hook: hooks.remove(hook)
        ),
        history_manager=SimpleNamespace(input_hist_raw=["", "a", "b"], input_hist_parsed=["", "A", "B"]),
        transform_cell=str.upper,
        execution_count=3,
    )
    with ExitStack() as closing:
        numbers = cell_numbers(shell, closing)
        assert (numbers["a A"], numbers["b B"], numbers.get("c\n C\n")) == (1, 2, None)
        (before_a_cell,) = hooks
        before_a_cell(SimpleNamespace(raw_cell="c\n", store_history=True))
        before_a_cell(SimpleNamespace(raw_cell="a", store_history=False))
        assert (numbers["c\n C\n"], numbers["a A"]) == (3, 1)
    assert hooks == []
