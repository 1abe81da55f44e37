"""Which optimizers travel with all their attributes."""

from __future__ import annotations

import pytest
import torch

from nbshm.memory.tensors import optimizers


@pytest.mark.parametrize(
    ("module", "goes_whole"),
    [("torch.optim.mine", True), ("__main__", True), (__name__, True), ("numpy", False)],
)
def test_those_of_torch_and_of_the_persons_classes_do(module: str, *, goes_whole: bool):
    class Mine(torch.optim.SGD):
        pass

    Mine.__module__ = module
    optimizer = Mine([torch.zeros(1)], lr=0.5)
    reduce = optimizers.of_class(Mine)
    assert (reduce is not None) == goes_whole
    if reduce:
        optimizer.seen = torch.ones(1)
        assert reduce(optimizer)[2]["seen"] is optimizer.seen
