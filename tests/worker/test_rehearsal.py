"""What the forkserver has done ahead for its workers: it spares them work, and hides nothing."""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path

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
    modules = [
        "numpy.ma",
        "nbshm.memory.tensors.plain_torch",
        "nbshm.memory.tensors.reducer",
        "torch._inductor",
    ]
    cell = f"%%parallel nprocs=1\nimport sys\n[name in sys.modules for name in {modules}]"
    assert shared_notebook.run(cell).check().result == {"text/plain": "[[True, True, True, False]]"}


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


HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
CHOICES = "[madvise]", "[always]"


@pytest.mark.skipif(
    not HUGE.exists() or not any(on in HUGE.read_text() for on in CHOICES), reason="no huge pages"
)
@pytest.mark.parametrize("choice", [None, "0"])
def test_big_tensors_are_in_huge_pages_unless_the_person_has_chosen(choice: str | None):
    code = (
        "import os, resource\n"
        "from nbshm.worker.huge_pages import tensors_in_huge_pages\n"
        "before = dict(os.environ)\n"
        "with tensors_in_huge_pages():\n"
        "    import torch\n"
        "assert dict(os.environ) == before\n"
        "faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "big = torch.full((1 << 24,), 1.0)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults)"
    )
    environment = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    environment |= {} if choice is None else {"THP_MEM_ALLOC_ENABLE": choice}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    pages = (1 << 26) // mmap.PAGESIZE
    # Not all of them, where memory is scattered.
    assert (int(done.stdout) < pages * 3 // 4) == (choice is None or "[always]" in HUGE.read_text())


@pytest.mark.skipif(sys.platform != "linux", reason="huge pages are Linux's")
def test_memory_holds_the_same_after_it_was_put_into_huge_pages():
    code = (
        "from nbshm.worker.huge_pages import collapse_memory\n"
        "before = bytearray(bytes(range(256)) * (1 << 15))\n"
        "collapse_memory(); collapse_memory()\n"
        "assert before == bytes(range(256)) * (1 << 15)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
