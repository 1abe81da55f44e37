"""Big tensors as results of two workers, against the stock forkserver's writing into tensors made before."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.samples import Comparison, compare
from kernels import kernel

_OURS = "%%parallel nprocs=2 out=made\nmade = torch.full(({length},), float(rank));"
_THEIR_PREPARATION = """
import multiprocessing
import torch
import squares
multiprocessing.set_forkserver_preload(["torch", "squares"])
"""
_THEIR_TENSORS = "made = [torch.ones({length}).share_memory_() for _ in range(2)]"
_THEIRS = """
torch.multiprocessing.start_processes(squares.fill, args=(made,), nprocs=2, start_method="forkserver");
"""


def results(directory: Path, repetitions: int, *, nbytes: int = 1 << 28) -> list[Comparison]:
    """Compare how long it takes until the notebook has one tensor from each of two workers."""
    shutil.copy(Path(__file__).with_name("squares.py"), directory)
    with kernel(directory) as ours, kernel(directory, load=False) as theirs:
        ours.run("import torch").check()
        theirs.run(_THEIR_PREPARATION).check()
        theirs.run(_THEIR_TENSORS.format(length=nbytes // 4)).check()
        cells = _OURS.format(length=nbytes // 4), _THEIRS
        for notebook, cell in zip((ours, theirs), cells, strict=True):
            notebook.run(cell, timeout=120).check()
            assert notebook.value("[int(tensor[-1]) for tensor in made]") == [0, 1]
        return [
            compare(
                f"two results of {nbytes >> 20} MiB",
                lambda: ours.run(cells[0]).check(),
                lambda: theirs.run(cells[1]).check(),
                peer="forkserver, made before",
                repetitions=repetitions,
            )
        ]
