"""Which names a cell reads otherwise than to write into what they stand for."""

from __future__ import annotations

import ast

import pytest

from nbshm.definitions.writes import writes


@pytest.mark.parametrize(
    "source",
    [
        "x[0] = 1",
        "x.a[0] = f(x.a[1])",
        "if x.a: x[0] = 1",
        "for i in claim(x.nodes): x.nodes[i]['k'] = i",
        "for i in range(len(x)): x[i].fit(1)",
        "n = len(x); x.fit(n); y",
        "for each in claim(x): each.fit(1)",
        "for i, (w, each) in enumerate(zip(v, x)): each.fit(w)",
        "def f(i): x[i].fit(1)\nf(0)",
        "with lock(): x.add_edge(1, 2)",
    ],
)
def test_a_cell_that_only_writes_into_what_a_name_stands_for_reads_nothing_of_it(source):
    assert {write.is_read for write in writes(ast.parse(source)) if write.name == "x"} == {False}


@pytest.mark.parametrize(
    "source",
    [
        "x[0] = 1; y = x",
        "x.a[0] += 1\nout[0] = x.energy()",
        "x.fit(1); print(x.score())",
        "for i in range(3):\n    x.fit(i)\n    if x.done: break",
        "for each in claim(x): each.fit(1)\nx",
        "for each in claim(x):\n    each.fit(1)\n    out[0] = each.score()",
        "for row in x:\n    for each in row:\n        each['k'] = 1\n    show(row)",
        "def f(): x.fit(1)\ndef g(): return x\nf()",
        "x.fit(1)\nwhile x.more: pass",
        "x.add_edge(1, 2)\nfor n in x: out[n] = 1",
    ],
)
def test_what_a_statement_reads_that_writes_nothing_into_it_is_read(source):
    assert {write.is_read for write in writes(ast.parse(source)) if write.name == "x"} == {True}
