"""What libraries make for the notebook, on its way by value (`by_value.py`)."""

from __future__ import annotations

import io
import pickle

import pytest

from nbshm.definitions.by_value import reduce_product

np = pytest.importorskip("numpy")


class ProductPickler(pickle.Pickler):
    def reducer_override(self, value):
        return reduce_product(value)


def half(x):
    return x / 2


@pytest.mark.parametrize("otypes", [None, [float]])
def test_a_vectorized_function_that_was_called_travels_without_its_ufuncs(otypes):
    vectorized = np.vectorize(half, otypes=otypes)
    assert vectorized([1, 2]).tolist() == [0.5, 1.0]
    file = io.BytesIO()
    ProductPickler(file).dump(vectorized)
    assert pickle.loads(file.getvalue())([3, 4, 5]).tolist() == [1.5, 2.0, 2.5]
    assert vectorized([6]).tolist() == [3.0]
