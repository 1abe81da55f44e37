from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view

from nbshm.worker.item_texts import text_of


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (None, "None"),
        (True, "True"),
        (7, "7"),
        (0.1 + 0.2, "0.3"),
        (math.nan, "nan"),
        (1j, "0+1j"),
        ("é", "'é'"),
        (b"a", "b'a'"),
        (Path("a/b"), "'a/b'"),
        ((1, [2.5, None]), "(1, [2.5, None])"),
        ({"b": 1, "a": 2}, "{'a': 2, 'b': 1}"),
        (np.int64(3), "3"),
        (np.str_("a"), "'a'"),
        (np.arange(3), "[0, 1, 2]"),
        (np.arange(6).reshape(2, 3)[1], "[3, 4, 5]"),
        (sliding_window_view(np.arange(4), 2)[1], "[1, 2]"),
        (np.array(4), "4"),
        (np.eye(2), "[1, 0, 0, 1] of shape (2, 2)"),
        (torch.tensor(5), "5"),
        (torch.arange(4)[1:], "[1, 2, 3]"),
        (torch.tensor([True]), "[True]"),
        ([torch.ones(1, 2), object()], "[[1, 1] of shape (1, 2), ...]"),
    ],
)
def test_the_text_of_an_item(item, text):
    assert text_of(item) == text


@pytest.mark.parametrize(
    "item",
    [
        object(),
        {1, 2},
        10**400,
        range(3),
        np.array([object()]),
        np.longdouble(1),
        np.zeros(100),
        torch.zeros(100),
        torch.zeros(1, device="meta"),
        torch.eye(2).to_sparse(),
        torch.nn.Parameter(torch.zeros(1)),
    ],
)
def test_what_can_not_be_told_from_others_has_no_text(item):
    assert text_of(item) is None


def test_memory_that_other_ranks_may_write_into_has_no_text():
    memory = bytearray(8)
    array = np.frombuffer(memory, np.int64)
    assert text_of(array) is None
    assert text_of(array[:1]) is None
    assert text_of(sliding_window_view(array, 1)[0]) is None
    assert text_of(torch.from_numpy(array)) is None
    assert text_of(torch.zeros(2).share_memory_()) is None


def test_integers_have_a_text_however_many_they_are():
    text = text_of(np.arange(1000))
    assert text == text_of(torch.arange(1000))
    assert text.startswith("[0, 1, 2")
    assert text.endswith("63] of shape (1000,)")


def test_long_items_are_looked_at_in_part():
    assert text_of("x" * 10**6) == repr("x" * 1000)
    assert text_of(list(range(10**6))).endswith("15, ... 1000000 in all]")
    assert text_of([[[[1]]]]) == "[[[...]]]"


def test_a_class_of_ones_own_is_not_asked():
    class Own(int):
        __repr__ = __str__ = __format__ = __hash__ = bit_length = None

    assert text_of(Own(1)) is None


def test_no_library_is_imported_for_it():
    code = "import sys\nfrom nbshm.worker.item_texts import text_of\ntext_of(object())\nprint(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert {"torch", "numpy"}.isdisjoint(loaded.stdout.split())
