from __future__ import annotations

import numpy as np
import pytest

from nbshm.memory import copying
from nbshm.memory.copying import copy, fill
from nbshm.memory.pages import Pages
from nbshm.memory.segments import Segment


@pytest.mark.parametrize("nbytes", [1, 1000, 70 * 2**20 + 3])
def test_every_byte_is_copied_and_no_other(nbytes):
    source = np.full(nbytes, 7, np.uint8)
    target = np.zeros(nbytes + 1, np.uint8)
    copy(to=target.ctypes.data, source=source.ctypes.data, nbytes=nbytes)
    assert (target[:nbytes] == 7).all()
    assert target[nbytes] == 0


@pytest.mark.parametrize("nbytes", [1, 2**20 + 5, 70 * 2**20 + 3])
@pytest.mark.parametrize("touched", [False, True])
def test_a_segment_is_filled_from_an_offset_on(nbytes, touched):
    source = np.arange(nbytes, dtype=np.uint32).astype(np.uint8)
    segment = Segment.create(nbytes + 100)
    segment.pages.touched = touched
    fill(segment, 64, source=source.ctypes.data, nbytes=nbytes)
    filled = np.frombuffer(segment.buffer, np.uint8)
    assert np.array_equal(filled[64 : 64 + nbytes], source)
    assert not filled[:64].any()
    assert not filled[64 + nbytes :].any()


def test_without_huge_pages_a_segment_is_filled_in_small_ones(monkeypatch):
    asked = []
    monkeypatch.setattr(Pages, "make_huge", lambda _, start, nbytes: asked.append((start, nbytes)))
    nbytes = 70 * 2**20 + 3
    source = np.arange(nbytes, dtype=np.uint32).astype(np.uint8)
    segment = Segment.create(nbytes)
    fill(segment, 0, source=source.ctypes.data, nbytes=nbytes)
    assert np.array_equal(np.frombuffer(segment.buffer, np.uint8), source)
    assert 0 < len(asked) <= 2  # each thread may have asked before the first was told


def test_huge_pages_that_take_long_are_asked_for_no_more(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(copying.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(Pages, "make_huge", lambda *_: True)
    huge = copying._HugePages(Segment.create(2**20).pages)
    assert not huge.make(0, 2**20)
    monkeypatch.setattr(Pages, "make_huge", None)
    assert not huge.make(0, 2**20)
