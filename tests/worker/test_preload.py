"""What the forkserver has imported before it is asked for a worker; seen in an interpreter of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROBE = """
import gc, json, os, sys, threading
group = os.getpgrp()
import nbshm.worker.preload
print(json.dumps({
    "left": os.getpgrp() == os.getpid() != group,
    "modules": sorted(sys.modules),
    "threads": threading.active_count(),
    "frozen": gc.get_freeze_count(),
    "path": sys.path,
    "environment": sorted(os.environ),
}))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = ":".join(entry for entry in sys.path if entry)
    command = [sys.executable, "-c", PROBE]
    directory = tmp_path_factory.mktemp("notebook")
    environment = {"PYTHONPATH": f"{directory}:{path}"}
    answer = subprocess.run(
        command, cwd=directory, env=environment, check=True, capture_output=True, text=True
    )
    return {**json.loads(answer.stdout), "directory": str(directory)}


def test_the_server_leads_a_group_of_its_own(server):
    assert server["left"]


def test_what_every_worker_needs_is_there(server):
    assert {"torch", "numpy", "IPython", "nbshm.worker.work", "nbshm.worker.shell"} <= set(server["modules"])


def test_what_is_the_kernels_is_not(server):
    rooms = {"nbshm.front.magics", "nbshm.runs.runner", "nbshm.processes.launcher"}
    kernels = {"ipykernel", "ipywidgets"} | rooms
    assert not kernels & set(server["modules"])


def test_no_thread_is_there_to_be_lost_in_a_fork(server):
    assert server["threads"] == 1


def test_memory_is_kept_from_the_collector(server):
    assert server["frozen"] > 10_000


def test_the_directory_of_the_notebook_is_not_imported_from(server):
    assert {"", server["directory"]}.isdisjoint(server["path"])


def test_torchs_switch_for_huge_pages_is_taken_back(server):
    assert "THP_MEM_ALLOC_ENABLE" not in server["environment"]
