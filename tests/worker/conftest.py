"""A process with a worker's shell, for tests that run bodies in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from body_client import BodyServer, body_server  # found by the path above


@pytest.fixture(scope="module")
def server() -> Iterator[BodyServer]:
    """One process for all tests of a module whose bodies leave nothing to each other."""
    with body_server() as running:
        yield running


@pytest.fixture
def fresh_server() -> Iterator[BodyServer]:
    """A process of the test's own."""
    with body_server() as running:
        yield running
