from __future__ import annotations

import pytest
from leaks import traced_kernel

PREAMBLE = """
import ctypes, json, os, signal, sys, threading, time
import multiprocessing as mp
from pathlib import Path
import numpy as np
import torch

happened = Path("happened").absolute()
ended = [0.0]

def now():
    happened.write_text(repr(time.time()))

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
