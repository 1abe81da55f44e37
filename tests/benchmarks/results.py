"""Big tensors as results of two workers, against the stock forkserver's writing into tensors of the kernel's.

A parallel cell gives new results each time. So the peer's tensors have to be made too, in shared memory and
before its processes start, which is most of its work. The same with tensors that were there before, and are
written over each time, is shown beside it: the peer then gives nothing new, and has pages that are touched.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.samples import Comparison, alternate
from kernels import Kernel, kernel

_OURS = "%%parallel nprocs=2 out=made\nmade = torch.full(({length},), float(rank));"
_THEIR_PREPARATION = """
import multiprocessing
import torch
import squares
multiprocessing.set_forkserver_preload(["torch", "squares"])
"""
_MAKE = "made = [torch.empty({length}).share_memory_() for _ in range(2)]"
_FILL = (
    'torch.multiprocessing.start_processes(squares.fill, args=(made,), nprocs=2, start_method="forkserver");'
)


def results(directory: Path, repetitions: int, *, nbytes: int = 1 << 28) -> list[Comparison]:
    """Compare how long it takes until the notebook has one tensor from each of two workers."""
    shutil.copy(Path(__file__).with_name("squares.py"), directory)
    make = _MAKE.format(length=nbytes // 4)
    cell = _OURS.format(length=nbytes // 4)
    with _kernels(directory) as (ours, theirs):
        for notebook, source in ((ours, cell), (theirs, f"{make}\n{_FILL}")):
            notebook.run(source, timeout=120).check()
            assert notebook.value("[int(tensor[-1]) for tensor in made]") == [0, 1]
        workload = f"two results of {nbytes >> 20} MiB"
        new, written_over, parallel = alternate(
            lambda: theirs.run(f"{make}\n{_FILL}", timeout=120).check(),
            lambda: theirs.run(_FILL, timeout=120).check(),
            lambda: ours.run(cell, timeout=120).check(),
            repetitions=repetitions,
        )
        return [
            Comparison(workload=workload, peer="forkserver, new tensors", ours=parallel, theirs=new),
            Comparison(workload=workload, peer="forkserver, old tensors", ours=parallel, theirs=written_over),
        ]


@contextmanager
def _kernels(directory: Path) -> Iterator[tuple[Kernel, Kernel]]:
    with kernel(directory) as ours, kernel(directory, load=False) as theirs:
        ours.run("import torch").check()
        theirs.run(_THEIR_PREPARATION).check()
        yield ours, theirs
