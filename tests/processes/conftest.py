from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from crews import METHODS

from nbshm.processes.launcher import Launcher


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    """Workers that do what `behaviours.py` says, from a forkserver that has imported it."""
    launcher = Launcher(work="behaviours:run", preload=["nbshm.worker.life"])
    launcher.prepare()
    yield launcher
    launcher.close()


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail where a test leaves descriptors or threads behind."""
    if "launcher" in request.fixturenames:
        request.getfixturevalue("launcher")
    resource_tracker.ensure_running()
    gc.collect()  # what earlier tests left to it must not be counted here
    before = _held()
    yield
    multiprocessing.set_start_method(None, force=True)  # what was unpickled may have fixed it
    gc.collect()
    # Fewer is no leak: a thread of an earlier test may have been on its way out.
    assert [(now, then) for now, then in zip(_held(), before, strict=True) if now > then] == []


def _held() -> tuple[int, int]:
    return len(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208  # they are no paths
