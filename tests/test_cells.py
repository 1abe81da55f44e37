"""Where the body of a parallel cell lies in its cell."""

from __future__ import annotations

import pytest

from nbshm.cells import line_of_body


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
