"""What is said, below an error in a rank, of what the person can do about it in the notebook."""

from __future__ import annotations

import pytest
from kernels import Kernel

LIBRARY = """
import re, sys


class FormulaError(Exception):
    pass


class CatalogError(Exception):
    pass


def fitted(formula):
    "Evaluate as patsy does."
    try:
        return eval(formula, {}, dict(sys._getframe(1).f_globals))
    except Exception as error:
        raise FormulaError(f"Error evaluating factor: {type(error).__name__}: {error}") from error


def evaluated(expression):
    "Look names up as numexpr does."
    names = sys._getframe(1).f_globals
    return sum(names[name] for name in re.findall("[a-z]+", expression))


def counted(query):
    "Look names up as databases do."
    table = query.split()[-1]
    if table not in sys._getframe(1).f_globals:
        raise CatalogError(f"Catalog Error: Table with name {table} does not exist!")
    return len(sys._getframe(1).f_globals[table])


def column(name):
    raise KeyError(name)
"""

NOTEBOOK = """
from texts import column, counted, evaluated, fitted
left, right, rows = 1, 2, [1, 2, 3]
query = "select count(*) from rows"

def total():
    return evaluated("left + right")
"""


@pytest.fixture(scope="module")
def texts(shared_notebook: Kernel) -> Kernel:
    (shared_notebook.directory / "texts.py").write_text(LIBRARY)
    shared_notebook.run(NOTEBOOK).check()
    return shared_notebook


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("fitted('left + 1')", "left"),
        ("try:\n    eval('left')\nexcept NameError as error:\n    raise ValueError from error", "left"),
    ],
)
def test_a_name_that_a_cause_of_the_error_says_is_missing_is_hinted_at(texts, body, name):
    reply = texts.run(f"%%parallel nprocs=1\n{body}")
    assert reply.error is not None
    told = f"The notebook has '{name}', but nothing in the cell shows that it is used. Add send={name}."
    assert told in reply.error[2]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("evaluated('left * 2')", "left"),
        ("counted(f'select count(*) from rows')", "rows"),
        ("counted(query)", "rows"),
        ("total()", "left"),
    ],
)
def test_a_name_that_only_a_text_uses_is_hinted_at(texts, body, name):
    reply = texts.run(f"%%parallel nprocs=1\n{body}")
    assert reply.error is not None
    told = (
        f"The notebook has '{name}', which the ranks have not got: names in texts are not sent. "
        f"If a text means that one, add send={name}."
    )
    assert told in " ".join(reply.error[2].split())


@pytest.mark.parametrize(
    "body",
    [
        "column('left')",
        "print('to the right')\ncolumn('left')",
        "{}['left']",
        "print('what is left')\n{}['left']",
        "import os\nprint('what is left')\nos.environ['left']",
        "import pandas\nprint('what is left')\npandas.DataFrame()['left']",
        "import re\nprint('what is left')\nre.left",
    ],
)
def test_a_text_that_is_a_key_is_not_taken_for_a_name(texts, body):
    reply = texts.run(f"%%parallel nprocs=1\n{body}")
    assert reply.error is not None
    assert "send=" not in reply.error[2]


OBSERVER = """
import copy, torch
class Observer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(1))
    def forward(self, x):
        return x * self.scale.resize_(len(x)).fill_(2)
net, x = Observer(), torch.ones(3)
"""


def test_what_can_not_grow_is_told_with_the_way_out(shared_notebook: Kernel) -> None:
    shared_notebook.run(OBSERVER).check()
    reply = shared_notebook.run("%%parallel nprocs=2\nnet(x);")
    assert reply.error is not None
    told = " ".join(reply.error[2].split())
    assert "A parallel cell moves the notebook's tensors to shared memory, where they can't grow" in told
    assert "x = x.clone(), or net = copy.deepcopy(net) and a batch through it." in told
    shared_notebook.run("net = copy.deepcopy(net)\nnet(x)").check()
    assert shared_notebook.run("%%parallel nprocs=2\nnet(x);").check().text == ""


TABLES = """
class Accessor:
    "What pandas and xarray make of an accessor's class."
    def __init__(self, kind):
        self._kind = kind
    def __get__(self, table, owner):
        return self if table is None else self._kind(table)

class Table:
    pass

def register(name):
    return lambda kind: setattr(Table, name, Accessor(kind)) or kind
"""
UNITS = """
import tables

@tables.register("units")
class Units:
    def __init__(self, table): self.of = "m"

def progress():
    tables.Table.progress_apply = lambda table, function: function(1)
"""
TABLES_NOTEBOOK = """
import tables, table_units
table_units.progress()

@tables.register("places")
class Places:
    def __init__(self, table): self.count = 3

table = tables.Table()
"""


@pytest.fixture(scope="module")
def tables(shared_notebook: Kernel) -> Kernel:
    (shared_notebook.directory / "tables.py").write_text(TABLES)
    (shared_notebook.directory / "table_units.py").write_text(UNITS)
    shared_notebook.run(TABLES_NOTEBOOK).check()
    return shared_notebook


@pytest.mark.parametrize(
    ("body", "giver", "name"),
    [
        ("table.units.of", "table_units", "units"),
        ("table.places.count", "Places", "places"),
        ("table.progress_apply(abs)", "table_units", "progress_apply"),
    ],
)
def test_what_has_been_added_to_a_librarys_class_is_hinted_at(tables, body, giver, name):
    reply = tables.run(f"%%parallel nprocs=1\n{body}")
    assert reply.error is not None
    told = (
        f"In the notebook {giver} has given Table its '{name}'; ranks import libraries afresh. "
        f"Name {giver} in the cell (or import it there), or repeat there the call that has done it."
    )
    assert told in " ".join(reply.error[2].split())
    repeated = f"{giver}.progress()" if name == "progress_apply" else giver
    assert tables.run(f"%%parallel nprocs=1\n{repeated}\n{body};").error is None


@pytest.mark.parametrize(
    "body", ["table.nowhere", "rank.units", "import fractions; fractions.Fraction(1).places"]
)
def test_an_attribute_that_is_nowhere_is_a_plain_error(tables, body):
    reply = tables.run(f"%%parallel nprocs=1\n{body}")
    assert reply.error is not None
    assert "In the notebook" not in reply.error[2]
