from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from multiprocessing import get_context, resource_tracker
from pathlib import Path

import pytest
import torch
from memory_notebook import Child, Notebook, open_descriptors


@pytest.fixture(scope="session", autouse=True)
def _kept_by_others() -> None:
    """Start what multiprocessing and torch start once and keep, so that it is not taken for a leak."""
    resource_tracker.ensure_running()
    get_context("spawn").Array("b", 1, lock=False)
    torch.multiprocessing.set_sharing_strategy("file_system")
    torch.zeros(1).share_memory_()
    torch.multiprocessing.set_sharing_strategy("file_descriptor")


@pytest.fixture(scope="session")
def children() -> Iterator[list[Child]]:
    started = [Child(), Child()]
    yield started
    for child in started:
        child.close()


@pytest.fixture
def notebook(children: list[Child]) -> Iterator[Notebook]:
    made = Notebook(children)
    yield made
    made.namespace.clear()
    made.out.clear()
    made.segments.spares.clear()


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """Fail a test that leaves a descriptor or a file of this process in /dev/shm."""
    descriptors = open_descriptors()
    yield
    if open_descriptors() > descriptors:
        gc.collect()
    assert open_descriptors() <= descriptors
    assert not list(Path("/dev/shm").glob(f"*_{os.getpid()}_*"))  # noqa: S108  # it is only read
