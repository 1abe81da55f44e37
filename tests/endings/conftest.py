from __future__ import annotations

import sys
from pathlib import Path

import pytest
from leaks import traced_kernel

sys.path.insert(0, str(Path(__file__).parent))

from waiting import wait_for_files

PREAMBLE = """
import ctypes, json, os, signal, sys, threading, time
import multiprocessing as mp
from pathlib import Path
import numpy as np
import torch

happened = Path("happened").absolute()
here = os.getcwd()
ended = [0.0]

def now():
    happened.write_text(repr(time.time()))

def ready(rank):
    Path(here, f"ready-{rank}").touch()

def seconds():
    "Return how long the last cell went on after its worker had called `now`."
    return ended[0] - float(happened.read_text())

def note_end(result):
    if "%%parallel" in (result.info.raw_cell or ""):
        ended[0] = time.time()

get_ipython().events.register("post_run_cell", note_end)
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """One kernel for all tests of a module, with what they all use, and the traces that it leaves."""
    with traced_kernel(tmp_path_factory.mktemp("kernel")) as found:
        found.kernel.run(PREAMBLE, timeout=120).check()
        yield found


@pytest.fixture(scope="module")
def prepared(traces):
    return traces.kernel


@pytest.fixture
def ready(prepared):
    """Return what waits until that many ranks have called `ready(rank)`, and forget what was ready before."""
    for path in prepared.directory.glob("ready-*"):
        path.unlink()
    return lambda nprocs: wait_for_files(prepared.directory, *(f"ready-{rank}" for rank in range(nprocs)))
