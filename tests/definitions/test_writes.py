from __future__ import annotations

import ast

import pytest

from nbshm.definitions.writes import Write, writes


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("x[0] = 1", ["x"]),
        ("x[0] += 1", ["x"]),
        ("del x[0]", ["x"]),
        ("a, (x[0], *y.z[1]) = 1, (2, 3)", ["x", "y.z"]),
        ("for x[0] in y:\n    pass", ["x"]),
        ("with y as x[0]:\n    pass", ["x"]),
        ("for i in y:\n    x.append(i)", ["x"]),
        ("frame.loc[0, 'a'] = 1", ["frame"]),
        ("frame['a'].iloc[0] += 1", ["frame['a']"]),
        ("frame.sort_values('a', inplace=True); frame.dropna(inplace=False)", ["frame"]),
        ("def f():\n    x['k'] = 1", ["x"]),
        ("def f(y):\n    x = []\n    x.append(y)\n    y[0] = x", []),
        ("def f():\n    x = []\n    def g(z=x.append(1)):\n        x[0] = z.a[0] = y[0] = 1", ["y"]),
        ("def f():\n    global x\n    x = []\n    x.append(1)", ["x"]),
        ("def f():\n    for x in y: x['k'] = 1", []),
        ("f = lambda x: x.append(y.pop().append(1))", []),
        ("x['a'][i].b[0] = 1", ["x['a'][i].b"]),
        ("x += 1", ["x"]),
        ("for i in y:\n    if i:\n        x = i * x", ["x"]),
        ("x = y + 1; x = f(x); x, y = y + x, 1", []),
        ("def f():\n    x = 0\n    x += 1\nclass C:\n    x += 1\ng = lambda: x + 1", []),
        ("x.count(1); y = x[0]; x.y = 2", []),
        ("f(x)[0] = 1", []),
    ],
)
def test_what_is_written_into_is_found_as_the_code_calls_it(source, texts):
    assert [write.text for write in writes(ast.parse(source))] == texts


def test_a_write_knows_the_way_to_what_it_writes_into_and_what_it_updates():
    steps = (("item", "a"), ("any item", None), ("attribute", "b"))
    text = "x['a'][i].b"
    assert writes(ast.parse("x['a'][i].b[0] = 1")) == [Write(name="x", steps=steps, text=text)]
    assert writes(ast.parse("x['a'][i].b[0] += 1")) == [
        Write(name="x", steps=steps, text=text, updates=("item", 0))
    ]


@pytest.mark.parametrize(
    ("source", "name", "steps", "text"),
    [
        ("for x in y: x['k'] = 1", "y", (("each", None),), "y"),
        ("for x in y.z[0]: x['k'] += 1", "y", (("attribute", "z"), ("item", 0), ("each", None)), "y.z[0]"),
        ("for x in y.values(): x.append(1)", "y", (("any item", None),), "y"),
        (
            "for k, x in nbshm.claim(y.items()): x.n.add(1)",
            "y",
            (("any item", None), ("attribute", "n")),
            "y",
        ),
        ("for i, x in enumerate(tqdm(y)): x['k'] = 1", "y", (("each", None),), "y"),
        ("for i, (w, x) in enumerate(zip(v, y)): x['k'] = 1", "y", (("each", None),), "y"),
        ("for row in y:\n    for x in row: x['k'] = 1", "y", (("each", None), ("each", None)), "y"),
    ],
)
def test_a_write_into_a_loops_variable_is_one_into_what_it_goes_through(source, name, steps, text):
    (write,) = writes(ast.parse(source))
    assert (write.name, write.steps, write.text, write.looped is None) == (name, steps, text, False)


@pytest.mark.parametrize(
    "source",
    [
        "for x in y:\n    x = dict(x)\n    x['k'] = 1",
        "for x in f(y): x['k'] = 1",
        "for x, in y: x['k'] = 1",
        "for x in x: x['k'] = 1",
        "for x in y: pass\nfor x in z: x['k'] = 1",
    ],
)
def test_a_variable_that_may_be_anything_is_called_by_its_own_name(source):
    assert [write.name for write in writes(ast.parse(source))] == ["x"]


def test_a_call_knows_whether_its_value_is_used():
    used = [write.uses_result for write in writes(ast.parse("x.add(1); y = x.add(1); y = x.f(inplace=True)"))]
    assert used == [False, True, False]
