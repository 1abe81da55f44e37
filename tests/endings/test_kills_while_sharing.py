"""Kills at random moments, while torch itself names and shares memory: nothing stays in /dev/shm.

`NBSHM_SOAK_KILLS` says how many in the long run (40 of each kind), `NBSHM_SOAK_SEED` which.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from pathlib import Path

import pytest
from leaks import traced_kernel
from waiting import wait_for_files

KILLS = int(os.environ.get("NBSHM_SOAK_KILLS", "40"))
SEED = int(os.environ.get("NBSHM_SOAK_SEED", str(time.time_ns() % 100_000)))
SECONDS = 2  # that anything may be left for

PREAMBLE = """
from pathlib import Path
import torch
weights, grid = torch.zeros(1000), torch.zeros(1000).numpy()
mine = [torch.zeros(1000).share_memory_() for _ in range(3)]
"""

# The memory that is shared is big: while torch fills it, it has a name under either strategy.
SHARING = """%%parallel nprocs=2
while True:
    kept = [torch.zeros(2_000_000).share_memory_() for _ in range(3)]
    weights.add_(1)
    grid[rank] += 1
    Path(f"shared-{rank}").touch()
"""


STRATEGIES = pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])


@STRATEGIES
def test_kills_leave_nothing_in_shared_memory(tmp_path, strategy):
    all_kinds_of_kills(tmp_path, strategy, times=2)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@STRATEGIES
def test_kills_by_the_dozen_leave_nothing_in_shared_memory(strategy):
    for _ in range(max(1, KILLS // 10)):
        with tempfile.TemporaryDirectory() as directory:  # torch's manager takes no long paths
            all_kinds_of_kills(Path(directory), strategy, times=10)


def all_kinds_of_kills(directory, strategy, *, times):
    """Kill workers, torch's managers of the names under file_system, and in the end the kernel."""
    chance = random.Random(SEED)  # noqa: S311  # nothing secret
    print(f"NBSHM_SOAK_SEED={SEED}")
    with traced_kernel(directory) as traces:
        traces.kernel.run(f"%shm_strategy {strategy}").check()
        traces.kernel.run(PREAMBLE, timeout=120).check()
        traces.kernel.run("%%parallel nprocs=2\nweights.add_(1)").check()
        before = traces.footprint()
        for _ in range(times):
            interrupted_by(kill_a_worker, traces, chance, before)
            if strategy == "file_system":
                interrupted_by(kill_managers_of_workers, traces, chance, before)
        start_sharing(traces, chance)
        for pid in managers(traces.footprint().processes):
            os.kill(pid, signal.SIGKILL)  # or they would clear away what the kernel has named
        os.kill(traces.pid, signal.SIGKILL)
        traces.wait_for_names(frozenset(), seconds=SECONDS)


def interrupted_by(kill, traces, chance, before):
    """Kill something while ranks share memory; the cell fails, and leaves what was there before."""
    message = start_sharing(traces, chance)
    kill(chance, traces.footprint().processes - before.processes)
    reply = traces.kernel.finish(message)
    assert reply.error[0] in {"RankDied", "RankRaised"}, reply.text
    traces.wait_for_names(before.shared_memory, seconds=SECONDS)


def start_sharing(traces, chance):
    """Start a cell whose ranks share memory again and again, and wait for a random moment in it."""
    for file in traces.kernel.directory.glob("shared-*"):
        file.unlink()
    message = traces.kernel.send(SHARING)
    wait_for_files(traces.kernel.directory, "shared-0", "shared-1")
    time.sleep(chance.uniform(0, 0.1))  # the random moment
    return message


def kill_a_worker(chance, new):
    os.kill(chance.choice(sorted(new - managers(new))), signal.SIGKILL)


def kill_managers_of_workers(_, new):
    for pid in managers(new):
        os.kill(pid, signal.SIGKILL)


def managers(pids):
    """Return those that are torch's managers of named memory."""
    return {pid for pid in pids if Path(f"/proc/{pid}/comm").read_text().startswith("torch_shm_man")}
