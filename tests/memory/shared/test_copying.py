from __future__ import annotations

import mmap
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from nbshm.memory.shared import copying
from nbshm.memory.shared.copying import copy, fill, map_touched
from nbshm.memory.shared.pages import Pages
from nbshm.memory.shared.raw_memory import HUGE_PAGE
from nbshm.memory.shared.segments import Segment


@pytest.mark.parametrize("nbytes", [1, 1000, 70 * 2**20 + 3])
def test_every_byte_is_copied_and_no_other(nbytes):
    source = np.full(nbytes, 7, np.uint8)
    target = np.zeros(nbytes + 1, np.uint8)
    copy(to=target.ctypes.data, source=source.ctypes.data, nbytes=nbytes)
    assert (target[:nbytes] == 7).all()
    assert target[nbytes] == 0


def test_every_byte_is_copied_where_no_more_threads_are_to_be_had(monkeypatch):
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(copying, "_threads", lambda: 4)
    monkeypatch.setattr(threading.Thread, "start", start)
    nbytes = 70 * 2**20 + 3
    source, target = np.arange(nbytes, dtype=np.uint32).astype(np.uint8), np.zeros(nbytes, np.uint8)
    copy(to=target.ctypes.data, source=source.ctypes.data, nbytes=nbytes)
    assert np.array_equal(target, source)


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
    made = []
    huge = copying._HugePages(lambda *piece: made.append(piece) or True)
    assert not huge.make(0, 2**20)
    assert not huge.make(2**20, 2**20)
    assert made == [(0, 2**20)]


def small_pages(nbytes):
    """A segment that lies in small pages, with something in each."""
    segment = Segment.create(nbytes)
    os.pwrite(segment.fd, b"page" * (nbytes // 4), 0)
    return segment


def in_huge_pages(segment):
    """How many bytes of a segment this process has mapped as huge pages."""
    mappings = Path("/proc/self/smaps").read_text(encoding="utf-8").split(f"{segment.address:x}-", 1)[1]
    (line, *_) = (line for line in mappings.splitlines() if line.startswith("ShmemPmdMapped:"))
    return int(line.split()[1]) << 10


def test_touched_pages_are_huge_ones_for_whoever_maps_them_next(monkeypatch):
    monkeypatch.setattr(copying, "_PATIENCE", 1)  # a busy machine should not decide
    nbytes = copying._PIECE + HUGE_PAGE + mmap.PAGESIZE
    small = small_pages(nbytes)
    map_touched(Segment.over(os.dup(small.fd), nbytes).pages)
    after = Segment.over(os.dup(small.fd), nbytes)
    after.pages.populate()
    assert bytes(after.buffer) == b"page" * (nbytes // 4)
    if not Segment.create(HUGE_PAGE).pages.make_huge(0, HUGE_PAGE):
        pytest.skip("this Linux has no huge page")
    assert in_huge_pages(after) == copying._PIECE + HUGE_PAGE


def test_touched_pages_stay_small_where_huge_ones_are_not_to_be_had(monkeypatch):
    asked = []
    monkeypatch.setattr(Pages, "collapse", lambda _, start, nbytes: asked.append((start, nbytes)))
    nbytes = 2 * copying._PIECE
    segment = small_pages(nbytes)
    map_touched(segment.pages)
    assert asked == [(0, copying._PIECE)]
    assert segment.pages.touched
    assert bytes(segment.buffer[:8]) == b"pagepage"
