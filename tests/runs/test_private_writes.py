"""Which of a cell's writes stay in the ranks."""

from __future__ import annotations

import array
import ast
from collections import defaultdict, deque

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from nbshm.definitions.writes import writes
from nbshm.runs.private_writes import private_writes


class Bag:
    def __init__(self):
        self.items, self.arrays, self.count, self.array = [1], {"a": np.zeros(2)}, 0, np.zeros(2)


class FileBag(Bag):
    pass


class LibraryBag(Bag):
    __module__ = "numpy"


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
