from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nbshm.memory.shared.regions import Region, lay_out, merge

MIB = 2**20


def test_overlapping_spans_become_one_region():
    assert merge([(100, 10, 0), (105, 20, 1), (300, 5, 2)]) == [
        Region(address=100, nbytes=25, numbers=(0, 1)),
        Region(address=300, nbytes=5, numbers=(2,)),
    ]


def test_spans_that_touch_stay_apart():
    assert len(merge([(100, 10, 0), (110, 10, 1)])) == 2


def test_nothing_makes_no_region():
    assert merge([]) == []


def region(address, nbytes):
    return Region(address=address, nbytes=nbytes, numbers=(0,))


def test_small_regions_share_a_segment_and_big_ones_do_not():
    layout = lay_out([region(64, 100), region(640, 10 * MIB), region(128 * MIB, 100)])
    assert layout.spots == ((0, 0), (1, 0), (0, 128))
    assert layout.sizes == (228, 10 * MIB)


def test_all_regions_can_be_kept_together():
    layout = lay_out([region(64, 10 * MIB), region(64 * MIB, 10 * MIB)], together=True)
    assert layout.sizes == (20 * MIB,)


def test_no_shared_segment_is_larger_than_a_file_may_be():
    layout = lay_out([region(1024 * number, 600) for number in range(10)], largest=2000)
    assert max(layout.sizes) <= 2000
    assert len(layout.sizes) == 4


@given(st.lists(st.tuples(st.integers(1, 10_000), st.integers(1, 500)), max_size=30))
def test_merging_and_laying_out_keep_every_byte_apart_and_aligned(pieces):
    regions = merge((address, nbytes, number) for number, (address, nbytes) in enumerate(pieces))
    covered = {byte for address, nbytes in pieces for byte in range(address, address + nbytes)}
    assert sum(piece.nbytes for piece in regions) == len(covered)
    assert sorted(number for piece in regions for number in piece.numbers) == list(range(len(pieces)))
    layout = lay_out(regions, largest=1000)
    end = dict.fromkeys(range(len(layout.sizes)), 0)
    for piece, (segment, offset) in zip(regions, layout.spots, strict=True):
        assert offset >= end[segment]
        assert offset % 64 == piece.address % 64
        end[segment] = offset + piece.nbytes
    assert tuple(end.values()) == layout.sizes
