from __future__ import annotations

import numpy as np
import pytest

from nbshm.memory.copying import copy


@pytest.mark.parametrize("nbytes", [1, 1000, 70 * 2**20 + 3])
def test_every_byte_is_copied_and_no_other(nbytes):
    source = np.full(nbytes, 7, np.uint8)
    target = np.zeros(nbytes + 1, np.uint8)
    copy(to=target.ctypes.data, source=source.ctypes.data, nbytes=nbytes)
    assert (target[:nbytes] == 7).all()
    assert target[nbytes] == 0
