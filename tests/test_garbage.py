from __future__ import annotations

import gc

import pytest

from nbshm.garbage import collection_put_off


def test_collection_that_was_off_stays_off():
    gc.disable()
    try:
        with collection_put_off():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_collection_goes_on_after_an_error():
    with pytest.raises(ZeroDivisionError), collection_put_off():
        assert gc.isenabled() / 0
    assert gc.isenabled()
