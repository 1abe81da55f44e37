"""What the forkserver has done ahead for its workers: it spares them work, and hides nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

DTYPE = "%%parallel nprocs=2\nimport torch; str(torch.get_default_dtype())"


def test_a_worker_differs_from_the_server_where_the_notebook_does_and_only_then(shared_notebook):
    shared_notebook.run("import torch, numpy; torch.set_default_dtype(torch.float64)").check()
    assert shared_notebook.run(DTYPE).check().result == {"text/plain": "['torch.float64', 'torch.float64']"}
    shared_notebook.run("torch.set_default_dtype(torch.float32)").check()
    assert shared_notebook.run(DTYPE).check().result == {"text/plain": "['torch.float32', 'torch.float32']"}


def test_threads_of_the_blas_are_as_many_as_allowed_and_none_is_started_for_one(shared_notebook):
    shared_notebook.run("import os, numpy, threadpoolctl").check()
    one = shared_notebook.run("%%parallel nprocs=1 threads=1\nlen(os.listdir('/proc/self/task'))").check()
    assert one.result == {"text/plain": "[2]"}  # the main thread, and the one that follows where it is
    pools = "{pool['num_threads'] for pool in threadpoolctl.threadpool_info()}"
    several = shared_notebook.run(f"%%parallel nprocs=1 threads=2\n{pools}").check()
    assert several.result == {"text/plain": "[{2}]"}


def test_a_worker_finds_imported_what_it_always_needs_and_no_compiler(shared_notebook):
    modules = "{'numpy.ma', 'nbshm.memory.tensors', 'nbshm.memory.plain_torch', 'torch._inductor'}"
    cell = f"%%parallel nprocs=1\nimport sys\nsorted({modules} & sys.modules.keys())"
    expected = "[['nbshm.memory.plain_torch', 'nbshm.memory.tensors', 'numpy.ma']]"
    assert shared_notebook.run(cell).check().result == {"text/plain": expected}


def test_determinism_reaches_torchs_compiler_when_a_worker_imports_it(shared_notebook):
    shared_notebook.run("import torch; torch.use_deterministic_algorithms(True, warn_only=True)").check()
    try:
        reply = shared_notebook.run(
            "%%parallel nprocs=1\nimport torch, torch._inductor.config as config\n"
            "torch.get_deterministic_debug_mode(), config.deterministic"
        ).check()
    finally:
        shared_notebook.run("torch.use_deterministic_algorithms(False)").check()
    assert reply.result == {"text/plain": "[(1, True)]"}


@pytest.mark.skipif(sys.platform != "linux", reason="huge pages are Linux's")
def test_memory_holds_the_same_after_it_was_put_into_huge_pages():
    code = (
        "from nbshm.worker.huge_pages import collapse_memory\n"
        "before = bytearray(bytes(range(256)) * (1 << 15))\n"
        "collapse_memory(); collapse_memory()\n"
        "assert before == bytes(range(256)) * (1 << 15)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
