"""Which of a cell's writes stay in the ranks."""

from __future__ import annotations

import array
import ast
import ctypes
import datetime as dt
import multiprocessing
import sys
from collections import defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import BaseEstimator

from nbshm.definitions.writes import writes
from nbshm.runs.private_writes import private_writes


class Bag:
    def __init__(self):
        self.items, self.arrays, self.count, self.array = [1], {"a": np.zeros(2)}, 0, np.zeros(2)


class FileBag(Bag):
    pass


class Settings:
    """Answers for any attribute out of a dictionary, and raises what that raises."""

    __slots__ = ("_settings",)
    __module__ = "__main__"

    def __init__(self, **settings):
        object.__setattr__(self, "_settings", settings)

    def __getattr__(self, name):
        return self._settings[name]


class LibraryBag(Bag):
    __module__ = "numpy"


class Atoms:
    __module__ = "numpy"

    def __init__(self):
        self.arrays, self.count = {"a": np.zeros(2)}, 0


class SGD(BaseEstimator):
    pass


SGD.__module__ = "numpy"
Bag.__module__ = "__main__"
Bag.made = 0

NAMESPACE = {
    "array": np.zeros(2),
    "arrays": [np.zeros(2), np.zeros(2)],
    "bag": Bag(),
    "Bag": Bag,
    "by_key": defaultdict(list, x=[1]),
    "bytes": bytearray(2),
    "empty": defaultdict(list),
    "file_bag": FileBag(),
    "frame": pd.DataFrame({"a": [1.0, 2.0]}),
    "library_bag": LibraryBag(),
    "nested": {"x": {"y": [1, 2]}, "a": np.zeros(2)},
    "numbers": array.array("d", [0.0]),
    "objects": np.array([np.zeros(2), None], dtype=object),
    "queue": deque([1]),
    "rows": [[1], [2]],
    "so_far": 0.0,
    "sparse": scipy.sparse.csr_array(np.eye(2)),
}


@pytest.mark.parametrize(
    ("source", "private"),
    [
        ("queue.append(1); queue.clear()", {"queue": "deque"}),
        ("bag.count += 1; Bag.made += 1", {"bag.count": "int", "Bag.made": "int"}),
        ("bag.array += 1; bag.new += 1; array.size += 1", {}),
        ("def add(): bag.count += 1", {}),
        ("nested['x']['y'][0] = 3", {"nested['x']['y']": "list"}),
        ("nested['new'] = 3", {"nested": "dict"}),
        ("by_key['x'].append(rank)", {"by_key['x']": "list"}),
        ("by_key['new'].append(rank)", {"by_key": "defaultdict"}),
        ("empty[rank].append(rank)", {"empty": "defaultdict"}),
        ("empty[rank][0].append(rank)", {"empty": "defaultdict"}),
        (
            "nested['x']['y'].append(1); nested['new'] = 1; rows.append([])",
            {"nested": "dict", "rows": "list"},
        ),
        ("bytes[rank] = 1; numbers[rank] = 1", {"bytes": "bytearray", "numbers": "array"}),
        ("rows[rank][0] = 3", {"rows[rank]": "list"}),
        ("frame['a'].iloc[0] = 3", {"frame": "DataFrame"}),
        ("frame.dropna(inplace=True)", {"frame": "DataFrame"}),
        ("sparse[rank, rank] = 1", {"sparse": "csr_array"}),
        ("objects[0][rank] = 1", {"objects": "object array"}),
        ("bag.items.append(1)", {"bag.items": "list"}),
        ("file_bag.items.append(1)", {"file_bag.items": "list"}),
        ("arrays[rank] = 1", {"arrays": "list"}),
        ("so_far += rank", {"so_far": "float"}),
        ("so_far = rank - so_far", {"so_far": "float"}),
        ("rows += [[rank]]", {"rows": "list"}),
    ],
)
def test_a_write_into_what_each_rank_has_a_copy_of_is_private(source, private):
    assert private_writes(writes(ast.parse(source)), NAMESPACE) == private


@pytest.mark.parametrize(
    "source",
    [
        "array[0] = 1",
        "arrays[rank][0] = 1",
        "arrays[rank] += 1",
        "arrays[0] -= 1",
        "nested['a'][rank] = 1",
        "nested['a'] *= 2",
        "array += 1",
        "array = array + 1",
        "bag.arrays['a'] += 1",
        "library_bag.items.append(1)",
        "unknown[0] = 1; nested['unknown'][0] = 1; bag.unknown[0] = 1; queue[0].x[5] = 1",
    ],
)
def test_a_write_into_what_is_shared_or_unknown_is_not(source):
    assert private_writes(writes(ast.parse(source)), NAMESPACE) == {}


class OwnFrame(pd.DataFrame):
    pass


NUMBERS = [
    np.float64(1),
    np.int64(1),
    np.datetime64("2020-01-01"),
    Decimal(1),
    Fraction(1, 2),
    pd.Timestamp(0),
    pd.Timedelta(1),
    dt.timedelta(1),
    dt.date(2020, 1, 1),
]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: type(number).__name__)
def test_adding_to_a_number_of_any_library_is_private(number):
    kind = type(number).__name__
    assert private_writes(writes(ast.parse("total += x")), {"total": number}) == {"total": kind}
    assert private_writes(writes(ast.parse("box.total += x")), {"box": SimpleNamespace(total=number)}) == {
        "box.total": kind
    }


def test_adding_to_a_row_of_a_structured_array_or_to_what_is_no_number_is_not():
    rows = np.zeros(2, dtype=[("a", float)])
    found = private_writes(writes(ast.parse("row += x; any += x")), {"row": rows[0], "any": object()})
    assert found == {}


def test_frames_of_derived_classes_are_private_and_arrays_that_are_set_on_them_are_not():
    frame = OwnFrame({"a": [1.0, 2.0]})
    frame.__dict__["extra"] = np.zeros(2)
    assert private_writes(writes(ast.parse("frame.loc[0, 'a'] = 1")), {"frame": frame}) == {
        "frame": "OwnFrame"
    }
    OwnFrame.__module__ = "__main__"
    assert private_writes(writes(ast.parse("frame['a'] = 1")), {"frame": frame}) == {"frame": "OwnFrame"}
    assert private_writes(writes(ast.parse("frame.extra[0] = 1")), {"frame": frame}) == {}


def test_what_a_frame_returns_may_be_another_one():
    found = private_writes(writes(ast.parse("y = frame.add(1); z = frame.a.add(1)")), NAMESPACE)
    assert found == {}


def test_arrays_and_structures_of_ctypes_are_private_but_for_shared_ones():
    class Point(ctypes.Structure):
        _fields_ = (("x", ctypes.c_int),)

    names = {"own": (ctypes.c_int * 3)(), "point": Point(), "raw": multiprocessing.RawArray("i", 3)}
    found = private_writes(writes(ast.parse("own[0] = 1; point.x += 1; raw[0] = 1")), names)
    assert found == {"own": "c_int_Array_3", "point": "Point"}


def test_frames_of_polars_are_private():
    polars = pytest.importorskip("polars")
    names = {"frame": polars.DataFrame({"a": [1]})}
    assert private_writes(writes(ast.parse("frame[0, 'a'] = 1")), names) == {"frame": "DataFrame"}
    assert private_writes(writes(ast.parse("other = frame.update(frame)")), names) == {}


def test_arrays_of_zarr_are_private_unless_they_are_in_a_file(tmp_path):
    zarr = pytest.importorskip("zarr")
    names = {
        "memory": zarr.zeros((2,)),
        "file": zarr.open(str(tmp_path / "file"), mode="w", shape=(2,)),
    }
    assert private_writes(writes(ast.parse("memory[0] = 1; file[0] = 1")), names) == {"memory": "Array"}


@pytest.mark.parametrize(
    ("source", "private"),
    [
        ("atoms.arrays['a'][0] = 1", {"atoms": "Atoms"}),
        ("bag.inner = 0; holder.bag.array[0] += 1", {"holder.bag.array": "Atoms"}),
        ("atoms.add_edge(1, 2); atoms.count += 1", {"atoms": "Atoms"}),
        ("atoms.arrays['a'][0] = 1; atoms.energy()", {}),
        ("atoms.fit(1); atoms.add(1); x = atoms.add_edge(1)", {}),
        ("model.fit(x); models[rank].partial_fit(x); x", {"model": "SGD", "models[rank]": "SGD"}),
        ("for i in claim(range(len(models))): models[i].fit(x)", {"models[i]": "SGD"}),
        ("for each in claim(models): each.fit(x)", {"models": "list"}),
        ("model.fit(x); out[rank] = model.score(x)", {}),
        ("for each in claim(models):\n    each.fit(x)\n    out[0] = each.coef_", {}),
        ("fitted = model.fit(x); models[0].fit(x).coef_; own.fit(x)", {}),
        ("models[0].partial_fit(x); model.fit(x)", {"models[0]": "SGD"}),
    ],
)
def test_a_librarys_object_is_private_where_the_cell_does_nothing_else_with_it(source, private):
    holder = SimpleNamespace(bag=Atoms())
    names = {
        "holder": holder,
        "model": SGD(),
        "models": [SGD(), SGD()],
        "atoms": Atoms(),
        "own": Bag(),
        "out": np.zeros(2),
    }
    assert private_writes(writes(ast.parse(source)), {**NAMESPACE, **names}) == private


def test_a_librarys_object_that_code_of_the_notebook_reads_may_be_meant_for_the_rank_alone():
    namespace = {"__name__": "__main__", "atoms": Atoms()}
    exec("def energy(): return atoms.count\nclass Run:\n    def step(self): return atoms", namespace)  # noqa: S102
    namespace["run"] = namespace["Run"]()
    found = writes(ast.parse("atoms.arrays['a'][0] = 1"))
    assert private_writes(found, namespace, ["atoms"]) == {"atoms": "Atoms"}
    for name in ("energy", "Run", "run"):
        assert private_writes(found, namespace, ["atoms", name]) == {}


def test_all_that_a_local_module_has_is_private(tmp_path, monkeypatch):
    module = ModuleType("conf")
    module.__file__ = str(tmp_path / "conf.py")
    module.TABLE, module.items, module.array, module.count = {}, [np.zeros(2)], np.zeros(2), 0
    module.tensor = torch.zeros(2)
    module.file = np.memmap(tmp_path / "file", mode="w+", shape=2)
    monkeypatch.setitem(sys.modules, "conf", module)
    source = "c.TABLE[0] = c.items[0][1] = c.array[0] = c.tensor[0] = c.file[0] = 1; c.count += 1"
    assert private_writes(writes(ast.parse(source)), {"c": module}) == {
        "c.TABLE": "dict",
        "c.items[0]": "ndarray",
        "c.array": "ndarray",
        "c.tensor": "Tensor",
        "c.count": "int",
    }


def test_modules_of_libraries_are_left_alone():
    assert private_writes(writes(ast.parse("sys.path[0] = 1; sys.path.append(1)")), {"sys": sys}) == {}


@pytest.mark.parametrize(
    ("source", "private"),
    [
        ("for r in records: r['n'] += 1", {"records": "list"}),
        ("for r in nbshm.claim(records): r['n'] = 1", {"records": "list"}),
        ("for k, r in table.items(): r.append(1)", {"table": "dict"}),
        ("for bag in bags: bag.count += 1", {"bags": "list"}),
        ("for a in arrays: a[0] = 1", {}),
        ("for a in arrays: a += 1", {}),
        ("for k in table: k[0] = 1", {}),
        ("for bag in bags: bag.arrays['a'][0] = bag.array[0] = 1", {}),
    ],
)
def test_what_a_loop_goes_through_is_written_into_by_its_variable(source, private):
    names = {**NAMESPACE, "records": [{"n": 1}, {"n": 2}], "table": {"a": [1]}, "bags": [Bag(), Bag()]}
    assert private_writes(writes(ast.parse(source)), names) == private


def test_what_an_object_raises_for_its_attributes_is_passed_over():
    settings = {"settings": Settings(array=np.zeros(2))}
    assert private_writes(writes(ast.parse("settings.array[0] = 1")), settings) == {}
