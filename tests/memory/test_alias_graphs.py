"""Random graphs of arrays and tensors over one another's memory, written to by two workers in turn.

`NBSHM_SOAK_GRAPHS` says how many a soak tries (20 000).
"""

from __future__ import annotations

import os

import pytest
from alias_graphs import KINDS, Step, address, build, flat, plain, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_notebook import Notebook

GRAPHS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 20), st.integers(0, 41)), max_size=12)
NAMES = st.lists(st.integers(0, 14), unique=True)
ON_ONE_NOTEBOOK = [HealthCheck.function_scoped_fixture]  # each example begins with an empty namespace


@given(steps=GRAPHS, first=NAMES, second=NAMES)
@settings(max_examples=100, deadline=None, suppress_health_check=ON_ONE_NOTEBOOK)
def test_every_holder_sees_what_was_written_through_any_other(notebook: Notebook, steps, first, second):
    check(notebook, steps, first, second)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@given(steps=GRAPHS, first=NAMES, second=NAMES)
@settings(
    max_examples=int(os.environ.get("NBSHM_SOAK_GRAPHS", "20000")),
    deadline=None,
    suppress_health_check=ON_ONE_NOTEBOOK,
)
def test_every_holder_sees_what_was_written_in_many_graphs(notebook: Notebook, steps, first, second):
    check(notebook, steps, first, second)


def check(notebook: Notebook, steps: list[Step], first: list[int], second: list[int]) -> None:
    """Compare what two workers write with the same writes done here; the notebook's own comes back."""
    expected = build(steps)
    turns = [[f"v{number}" for number in numbers if f"v{number}" in expected] for numbers in (first, second)]
    for names in turns:
        write(expected, names)
    notebook.namespace.clear()
    notebook.namespace.update(build(steps), turns=turns)
    results = notebook.run_in_turn(
        "from alias_graphs import write\n"
        "result = {name: globals()[name] for name in turns[rank]}\n"
        "write(result, turns[rank])",
        "turns",
        *sorted({*turns[0], *turns[1]}),
    )
    values = {name: notebook[name] for name in expected}
    assert plain(values) == plain(expected)
    for names, result in zip(turns, results, strict=True):
        for name in names:
            for got, own in zip(flat(result[name]), flat(values[name]), strict=True):
                assert address(got) == address(own) or 0 in own.shape
