"""Nothing is left behind when the kernel is gone, whatever became of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from crews import METHODS, wait_until_gone

KERNEL = """
import json, os, pickle, sys, tempfile
from nbshm.events import Output
from nbshm.processes.launcher import Launcher
from nbshm.processes.supervisor import Supervisor
method, behaviour, directory = sys.argv[1:]
launcher = Launcher(work="behaviours:run", preload=["nbshm.worker.life"])
launcher.prepare()
launcher.sweeper.begin_directory(directory)
workers = launcher.launch(2, method)
workers.post(pickle.dumps((behaviour, "")))
ready = set()
for event in Supervisor(workers):
    if isinstance(event, Output) and "ready" in event.text:
        ready.add(event.rank)
    if len(ready) == 2:
        break
pids = [worker.pid for worker in workers]
pids += [launcher._server.pid, launcher.sweeper._process.pid]
print(json.dumps(pids), flush=True)
exec(sys.stdin.read())
"""


@pytest.fixture
def kernel(tmp_path):
    """Start an interpreter that acts as a kernel in the middle of a run; return it and what must go too."""
    started = []

    def start(method, behaviour):
        directory = tmp_path / "private"
        directory.mkdir()
        (directory / "file").write_text("left")
        command = [sys.executable, "-c", KERNEL, method, behaviour, str(directory)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        started.append(process)
        pids = json.loads(process.stdout.readline())
        return process, pids, directory

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@pytest.mark.parametrize("behaviour", ["wait_forever", "ignore_everything", "hold_gil", "with_child"])
@pytest.mark.parametrize("method", METHODS)
def test_a_killed_kernel_leaves_nothing(kernel, method, behaviour):
    process, pids, directory = kernel(method, behaviour)
    process.kill()
    check_all_gone(pids, directory)


def test_killing_the_kernels_whole_group_leaves_nothing(kernel):
    process, pids, directory = kernel("forkserver", "wait_forever")
    os.killpg(process.pid, signal.SIGKILL)
    check_all_gone(pids, directory)


@pytest.mark.parametrize("end", ["", "os._exit(1)", "raise SystemExit", "launcher.close()"])
def test_a_kernel_that_ends_in_any_way_leaves_nothing(kernel, end):
    process, pids, directory = kernel("forkserver", "wait_forever")
    process.communicate(end.encode(), timeout=20)
    check_all_gone(pids, directory)


def test_a_forked_child_that_outlives_the_kernel_keeps_nothing_alive(kernel):
    process, pids, directory = kernel("forkserver", "wait_forever")
    process.stdin.write(
        b"import os, time\npid = os.fork()\nprint(pid or time.sleep(3600), flush=True)\nos._exit(0)"
    )
    process.stdin.close()
    child = int(process.stdout.readline())
    try:
        check_all_gone(pids, directory)
    finally:
        os.kill(child, signal.SIGKILL)


def check_all_gone(pids, directory):
    for pid in pids:
        wait_until_gone(pid, 2)
    assert not directory.exists()
