from __future__ import annotations

import numpy as np
import pytest

from nbshm.memory.copying import copy, fill
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
