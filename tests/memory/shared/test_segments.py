from __future__ import annotations

import errno
import gc
import os
import pickle
from collections.abc import Callable
from multiprocessing import resource_sharer
from pathlib import Path

import numpy as np
import pytest
from memory_notebook import address_of, open_descriptors

from nbshm.memory.mapping import MappedSegments
from nbshm.memory.shared import pages, raw_memory
from nbshm.memory.shared.raw_memory import HUGE_PAGE
from nbshm.memory.shared.segments import Segment, Segments
from nbshm.rank_forks import forking_a_rank


def test_a_segment_lives_as_long_as_an_array_in_it():
    before = open_descriptors()
    segment = Segment.create(4096)
    fd = segment.fd
    array = np.frombuffer(segment.buffer, np.uint8)
    del segment
    gc.collect()
    os.fstat(fd)
    array[0] = 1
    del array
    assert open_descriptors() == before


def test_memory_is_found_in_the_segment_that_holds_all_of_it():
    segments = Segments()
    first, second = segments.create(4096), segments.create(8192)
    assert segments.find(first.address + 100, 10).fd == first.fd
    assert segments.find(second.address, 8192).fd == second.fd
    assert segments.find(second.address + 8000, 4096) is None
    assert segments.find(1, 1) is None


def test_a_segment_that_is_gone_is_found_no_more():
    segments = Segments()
    address = segments.create(4096).address
    assert segments.find(address, 1) is None
    assert len(segments) == 0


def test_a_segment_that_cannot_be_made_leaves_no_descriptor():
    before = open_descriptors()
    with pytest.raises(OSError, match=r"large|Invalid|allocate"):
        Segment.create(2**62)
    with pytest.raises(OSError, match="Invalid"):
        Segment.over(os.memfd_create("empty"), 4096)
    assert open_descriptors() == before


def test_a_pickled_segment_is_the_same_memory():
    segment = Segment.create(4096)
    other = pickle.loads(pickle.dumps(segment))
    resource_sharer.stop()
    segment.buffer[5] = 7
    assert other.buffer[5] == 7
    assert other.fd != segment.fd


def test_a_mapping_maps_each_segment_once_and_closes_its_descriptors():
    segment = Segment.create(4096)
    before = open_descriptors()
    with MappedSegments([os.dup(segment.fd)], [4096]) as mapping:
        shared, private = mapping.shared(0), mapping.private(0)
        assert mapping.shared(0) is shared
        assert mapping.private(0) is private
        private[0], shared[1] = 1, 2
        assert (segment.buffer[0], segment.buffer[1]) == (0, 2)
        place = mapping.place_of(address_of(shared) + 10, 5)
        assert (place.segment, place.offset, place.nbytes) == (0, 10, 5)
        assert mapping.place_of(segment.address, 5) is None
    del shared, private
    assert open_descriptors() == before


def test_pages_can_be_mapped_in_one_call():
    segment = Segment.create(100 * 4096)
    assert segment.pages.resident == 0
    segment.pages.populate()
    assert segment.pages.resident == segment.pages.nbytes


def test_a_mapping_begins_where_a_huge_page_can():
    for nbytes in (2 * HUGE_PAGE, 3 * HUGE_PAGE + 1):
        assert Segment.create(nbytes).address % HUGE_PAGE == 0


def test_nothing_is_mapped_beside_a_segment():
    before = mapped_bytes()
    segment = Segment.create(3 * HUGE_PAGE)
    assert mapped_bytes() - before == segment.pages.nbytes
    del segment
    assert mapped_bytes() == before


def test_where_addresses_are_scarce_a_segment_lies_anywhere(monkeypatch):
    def reserve_nothing(address, nbytes, access, flags, fd):
        if fd < 0:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        return mapped(address, nbytes, access, flags, fd)

    mapped = raw_memory._map
    monkeypatch.setattr(raw_memory, "_map", reserve_nothing)
    segment = Segment.create(2 * HUGE_PAGE)
    segment.buffer[2 * HUGE_PAGE - 1] = 1


def test_huge_pages_are_made_where_they_begin_and_are_zero():
    segment = Segment.create(4 * HUGE_PAGE + 4096)
    if not segment.pages.make_huge(100, 2 * HUGE_PAGE):
        pytest.skip("this Linux has no huge page")
    assert segment.pages.resident == 2 * HUGE_PAGE  # from the second on
    assert not any(segment.buffer[HUGE_PAGE : 3 * HUGE_PAGE : 4096])
    assert segment.pages.make_huge(3 * HUGE_PAGE, HUGE_PAGE + 4096)
    assert segment.pages.resident == 3 * HUGE_PAGE  # the last page is small


def mapped_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * 4096


def test_a_forked_child_has_a_copy_of_all_but_what_stays_shared():
    segments = Segments()
    copied, shared = segments.create(10_000), segments.create(10_000)
    shared.stay_shared()

    def child() -> bool:
        for segment in (copied, shared):
            segment.buffer[9_999] = 7
        is_listed = [segments.find(segment.address, 10_000) is not None for segment in (copied, shared)]
        return is_listed == [False, True]

    assert _forked(child)
    assert (copied.buffer[9_999], shared.buffer[9_999]) == (0, 7)


def test_a_forked_rank_shares_all_and_its_own_children_have_copies():
    segments = Segments()
    segment = segments.create(10_000)

    def grandchild() -> bool:
        segment.buffer[1] = 9
        return segments.find(segment.address, 1) is None

    def rank() -> bool:
        segment.buffer[0] = 7
        return _forked(grandchild)

    with forking_a_rank():
        assert _forked(rank)
    assert bytes(segment.buffer[:2]) == b"\7\0"


def test_a_child_without_room_for_a_copy_goes_on_sharing(monkeypatch):
    segments = Segments()
    segment = segments.create(10_000)

    def refused(*_: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(pages, "map_privately", refused)
    assert _forked(lambda: segments.find(segment.address, 1) is not None)


def _forked(function: Callable[[], bool]) -> bool:
    """Return what a function returns in a forked child; False if it raises."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if function() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
