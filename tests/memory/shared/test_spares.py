"""Pages are used again once nobody can see them any more (`spares.py`)."""

from __future__ import annotations

import os
import pickle
from multiprocessing import resource_sharer

import numpy as np
import pytest
import torch
from memory_notebook import Notebook, memory_of

from nbshm.memory import fitting
from nbshm.memory.shared import limits, spares
from nbshm.memory.shared.limits import Room
from nbshm.memory.shared.regions import ALIGNMENT
from nbshm.memory.shared.segments import Segments

_PAGES = 3 << 20
_BIG = _PAGES - ALIGNMENT  # as much as these pages are made for


@pytest.fixture
def segments():
    made = Segments()
    made.spares.expect(4 * _BIG)
    yield made
    made.spares.clear()


def test_pages_are_used_again_when_nothing_lies_in_them_any_more(segments: Segments):
    first = segments.create(_BIG)
    fd, array = first.fd, np.frombuffer(first.buffer, np.uint8)
    del first
    other = segments.create(_BIG)
    assert other.fd != fd
    del array
    assert segments.create(_BIG).fd == fd


@pytest.mark.parametrize(("wanted", "used"), [(_BIG - 1000, True), (_PAGES + 1, False), (_BIG // 2, False)])
def test_pages_are_used_again_for_about_as_much(segments: Segments, wanted, used):
    fd = segments.create(_BIG).fd
    again = segments.create(wanted)
    assert (again.fd == fd) is used
    assert again.nbytes == wanted
    assert segments.find(again.address, wanted + 1) is None


def test_small_segments_are_given_back(segments: Segments):
    segments.create(4096)
    assert len(segments.spares) == 0


def test_no_more_is_kept_than_a_run_has_filled(segments: Segments):
    made = [segments.create(_BIG) for _ in range(6)]
    made.clear()
    assert segments.spares.nbytes == 4 * _PAGES
    for _ in range(8):
        segments.spares.expect(_BIG)
    assert segments.spares.nbytes == _PAGES


def test_no_more_is_kept_than_a_part_of_the_memory_that_is_left(segments: Segments, monkeypatch):
    monkeypatch.setattr(limits, "memory_left", lambda: Room(nbytes=4 * _PAGES, where="", remedy=""))
    segments.spares.expect(4 * _BIG)
    made = [segments.create(_BIG) for _ in range(3)]
    made.clear()
    assert segments.spares.nbytes == _PAGES


def test_pages_that_a_forked_child_has_are_not_used_again(segments: Segments):
    segment = segments.create(_BIG)
    child = os.fork()
    if child == 0:
        segments.spares.take(_BIG)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    del segment
    assert len(segments.spares) == 0


def test_a_segment_may_be_seen_by_others_once_a_child_was_forked_or_it_was_handed_on(segments: Segments):
    segment, handed_on = segments.create(_BIG), segments.create(_BIG)
    pickle.dumps(handed_on)
    resource_sharer.stop()
    assert [one.may_be_seen_by_others for one in (segment, handed_on)] == [False, True]
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert segment.may_be_seen_by_others
    assert not segments.create(_BIG).may_be_seen_by_others


def test_a_forked_child_leaves_the_spares_to_its_parent(segments: Segments):
    segments.create(_BIG)
    assert len(segments.spares) == 1
    child = os.fork()
    if child == 0:
        os._exit(0 if segments.spares.take(_BIG) is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(segments.spares) == 1


def test_pages_that_were_handed_on_by_multiprocessing_are_not_used_again(segments: Segments):
    segment = segments.create(_BIG)
    received = pickle.loads(pickle.dumps(segment))
    resource_sharer.stop()
    del segment
    assert len(segments.spares) == 0
    assert received.nbytes == _BIG


def test_pages_of_zeros_are_new(segments: Segments):
    segments.create(_BIG).buffer[5] = 7
    assert not any(np.frombuffer(segments.create_zeroed(_BIG).buffer, np.uint8))


def test_the_mirror_of_an_array_is_used_again_by_the_next_run(notebook: Notebook):
    notebook["x"] = np.zeros(_BIG // 8)
    holder = [notebook["x"]]
    notebook.run("x += 1", "x")
    (kept,) = notebook.segments.spares._kept
    _, placement = notebook.place("x")
    with placement:
        assert placement.fds == (kept.fd,)
        placement.copy_back()
    notebook.run("x += 1", "x")
    assert holder[0].sum() == 2 * holder[0].size


def test_a_tensor_moves_into_the_memory_of_one_that_is_gone(notebook: Notebook):
    notebook["t"] = torch.zeros(_BIG)
    notebook.run("t += 1", "t")
    address = memory_of(notebook["t"])
    notebook["t"] = torch.full((_BIG,), 5.0)
    notebook.run("t += 1", "t")
    assert memory_of(notebook["t"]) == address
    assert notebook["t"].sum() == 6 * _BIG


def test_memory_of_a_result_is_used_again(notebook: Notebook):
    notebook["n"] = 1
    (result,) = notebook.run(f"result = np.ones({_PAGES}, dtype='u1')", "n")
    assert result.sum() == _PAGES
    del result
    assert notebook.segments.spares.nbytes >= _BIG


def test_results_come_back_in_pages_that_were_used_before(notebook: Notebook):
    notebook["n"] = 1
    code = f"result = np.full({_PAGES}, 5 + rank, dtype='u1')"
    first = notebook.run(code, "n", ranks=2)
    del first
    kept = sorted(pages.address for pages in notebook.segments.spares._kept)
    assert len(kept) == 2
    again = notebook.run(code, "n", ranks=2)
    assert sorted(notebook.segments.find(memory_of(result), 1).address for result in again) == kept
    assert [int(result.sum()) for result in again] == [5 * _PAGES, 6 * _PAGES]
    assert len(notebook.segments.spares) == 0


@pytest.mark.parametrize("kinds", [("torch", "np"), ("np", "torch")])
def test_memory_is_used_again_by_what_lies_otherwise_in_its_cache_lines(notebook: Notebook, kinds):
    """numpy's big arrays begin 16 bytes into a page, tensors at its begin or at 64."""
    notebook["n"] = 1
    addresses = set()
    for kind in kinds:
        (result,) = notebook.run(f"result = {kind}.ones({_PAGES}, dtype={kind}.uint8)", "n")
        addresses.add(notebook.segments.find(memory_of(result), 1).address)
        del result
    assert len(addresses) == 1


def test_a_result_of_another_size_leaves_the_spares_as_they_are(notebook: Notebook):
    notebook["n"] = 1
    notebook.segments.spares.expect(_BIG)
    notebook.segments.create(_BIG)
    small, big = (notebook.run(f"result = np.ones({size}, 'u1')", "n") for size in (_BIG // 3, _PAGES + 1))
    assert (small[0].sum(), big[0].sum()) == (_BIG // 3, _PAGES + 1)
    assert notebook.segments.spares.nbytes >= _BIG


def test_a_rank_that_fails_leaves_its_spare_to_the_next(notebook: Notebook):
    notebook["n"] = 1
    notebook.segments.spares.expect(_BIG)
    notebook.segments.create(_BIG)
    with pytest.raises(ZeroDivisionError):
        notebook.run("1 / 0", "n")
    assert len(notebook.segments.spares) == 1


def test_spares_are_given_back_where_memory_is_short(notebook: Notebook, monkeypatch):
    notebook.segments.spares.expect(_BIG)
    notebook.segments.create(_BIG)
    rooms = [Room(nbytes=1000, where="", remedy=""), Room(nbytes=1 << 30, where="", remedy="")]
    monkeypatch.setattr(fitting.limits, "memory_left", lambda: rooms.pop(0) if len(rooms) > 1 else rooms[0])
    notebook["t"] = torch.zeros(1000)
    notebook.run("t += 1", "t")
    assert len(notebook.segments.spares) == 0


def test_few_pages_are_kept_so_that_descriptors_are_not_used_up(segments: Segments):
    segments.spares.expect(100 << 20)
    made = [segments.create(1 << 20) for _ in range(20)]
    made.clear()
    assert len(segments.spares) == spares._MOST_PAGES
