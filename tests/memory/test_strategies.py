from __future__ import annotations

import pytest
import torch

from nbshm.memory.strategies import strategies, strategy, use_strategy


def test_the_strategy_in_force_can_be_changed():
    before = strategy()
    try:
        for name in strategies():
            use_strategy(name)
            assert strategy() == name == torch.multiprocessing.get_sharing_strategy()
    finally:
        use_strategy(before)


def test_a_wrong_name_is_answered_with_the_right_ones():
    with pytest.raises(ValueError, match="'pigeon'; there are file_descriptor, file_system"):
        use_strategy("pigeon")
