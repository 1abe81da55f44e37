"""A kernel that is killed in the middle of a run leaves no process and no file, whatever its workers do."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest
from kernels import Kernel
from leaks import traced_kernel
from waiting import wait_for_files

# A shared tensor, a mirrored array, a queue of the default context, a DataLoader and a pool with children of
# their own; a rank that ignores whatever can be ignored.
RUN = """%%parallel nprocs=2 start_method={method}
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
weights.add_(1)
grid[rank] += 1
answers.put(torch.ones(1000))
import torch.utils.data as data
batches = iter(data.DataLoader(torch.arange(100), num_workers=1))
next(batches)
pool = mp.get_context("fork").Pool(1)
pool.map(abs, [-1])
Path(here, f"ready-{{rank}}").touch()
{end}
"""

PREAMBLE = """
import ctypes, os, signal, time
from pathlib import Path
import numpy as np
import torch
import torch.multiprocessing as mp
here = os.getcwd()
weights, grid = torch.zeros(1000), np.zeros((10, 10))
held = [grid]
answers = mp.get_context("spawn").Queue()
"""


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
def test_a_killed_kernel_leaves_nothing(tmp_path, method, strategy):
    together = (method == "fork") == (strategy == "file_descriptor")
    end = "ctypes.PyDLL(None).sleep(600)" if together else "time.sleep(600)"
    with traced_kernel(tmp_path) as traces:
        notebook = traces.kernel
        notebook.run(PREAMBLE, timeout=120).check()
        notebook.run(f"%shm_strategy {strategy}").check()
        notebook.send(RUN.format(method=method, end=end))
        wait_for_files(notebook.directory, "ready-0", "ready-1")
        assert len(traces.footprint().processes) >= 7
        if together:
            os.killpg(traces.pid, signal.SIGKILL)
        else:
            os.kill(traces.pid, signal.SIGKILL)
        # torch's own manager of named storages looks every two seconds whether anybody needs it
        traces.wait_for_nothing(seconds=2 if strategy == "file_descriptor" else 5)


def test_workers_that_stand_by_end_with_a_killed_kernel(tmp_path):
    with traced_kernel(tmp_path) as traces:
        notebook = traces.kernel
        before = traces.footprint().processes
        notebook.run("%parallel standby=3").check()
        limit = time.monotonic() + 30
        while len(traces.footprint().processes - before) < len(["one", "two", "three"]):
            assert time.monotonic() < limit, "nobody stands by"
            time.sleep(0.01)
        os.kill(traces.pid, signal.SIGKILL)
        traces.wait_for_nothing(seconds=2)


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_a_kernel_that_is_shut_down_leaves_nothing(tmp_path, strategy):
    with traced_kernel(tmp_path) as traces:
        notebook = traces.kernel
        notebook.run(PREAMBLE, timeout=120).check()
        notebook.run(f"%shm_strategy {strategy}").check()
        for method in ("forkserver", "fork"):
            notebook.run(
                f"%%parallel nprocs=2 start_method={method}\nweights.add_(1); grid[rank] += 1"
            ).check()
        notebook.client.shutdown()
        traces.wait_for_nothing(seconds=10)  # as above, and the kernel takes its leave first


# As joblib has a tracker of its own, which a rank starts when it first uses it.
TRACKED = """%%parallel nprocs=1
from multiprocessing.resource_tracker import ResourceTracker
import os, signal
left = f"/left-{os.getpid()}"
with open(f"/dev/shm{left}", "w"): ResourceTracker().register(left, "shared_memory")
print(left, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_rank_had_a_tracker_for_is_removed(shared_notebook: Kernel):
    reply = shared_notebook.run(TRACKED)
    assert reply.error[0] == "RankDied", reply.text
    file = Path("/dev/shm" + re.search(r"/left-\d+", reply.text)[0])  # noqa: S108  # the system's place
    limit = time.monotonic() + 10
    while file.exists():
        assert time.monotonic() < limit, "the tracker was killed with the rank"
        time.sleep(0.01)
