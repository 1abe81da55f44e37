from __future__ import annotations

import faulthandler
import importlib.util
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from kernels import Kernel, kernel  # found by the path above

collect_ignore = [] if importlib.util.find_spec("playwright") else ["browser"]


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Kernel]:
    """A fresh kernel with the extension loaded."""
    with kernel(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def shared_notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """One kernel for all tests of a module that leave nothing to each other."""
    with kernel(tmp_path_factory.mktemp("notebook")) as running:
        yield running


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Let what is meant to be long run without a dump of its stacks."""
    if item.get_closest_marker("soak") or item.get_closest_marker("benchmark"):
        faulthandler.cancel_dump_traceback_later()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a GPU where there is none."""
    if item.get_closest_marker("cuda") is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a driver that is too old, say
        import torch

        has_gpu = torch.cuda.is_available()
    if not has_gpu:
        pytest.skip(f"torch {torch.__version__} finds no GPU here")
