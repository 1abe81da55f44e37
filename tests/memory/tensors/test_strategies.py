from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from nbshm.memory.tensors.strategies import (
    NoStrategy,
    check_strategy,
    overview,
    strategies,
    strategy,
    use_strategy,
)

TIMEOUT = 60


@pytest.fixture(autouse=True)
def _as_before():
    before = strategy()
    yield
    use_strategy(before)


def test_the_strategy_in_force_can_be_changed():
    for name in strategies():
        check_strategy(name)
        use_strategy(name)
        assert strategy() == name == torch.multiprocessing.get_sharing_strategy()
        (marked,) = [line for line in overview() if line.endswith("(in force)")]
        assert marked.startswith(name)


def test_a_wrong_name_is_answered_with_the_right_ones():
    with pytest.raises(NoStrategy, match="'pigeon'; there are file_descriptor, file_system"):
        check_strategy("pigeon")


def test_a_manager_that_can_not_start_is_told_with_its_own_error():
    source = "from nbshm.memory.tensors.strategies import check_strategy; check_strategy('file_system')"
    command, environment = [sys.executable, "-c", source], {**os.environ, "TMPDIR": "/nowhere"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    told = done.stderr.strip().splitlines()[-1]
    assert "NoStrategy: file_system can't be used here: torch's torch_shm_manager doesn't work" in told
    assert "could not generate a random directory" in told
    assert "able to write to TMPDIR" in told
