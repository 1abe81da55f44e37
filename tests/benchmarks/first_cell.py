"""The first parallel cell of a fresh kernel, sent right behind the load, against `import torch` there."""

from __future__ import annotations

from pathlib import Path

from benchmarks.samples import Comparison, seconds
from kernels import kernel


def first_cell(directory: Path, repetitions: int) -> list[Comparison]:
    """Take the time from sending the load to the end of the cell; a run needs `import torch` anyway."""
    ours, theirs = [], []
    for _ in range(repetitions):
        ours.append(_load_and_run(directory))
        theirs.append(_import_torch(directory))
    return [
        Comparison(
            workload="load and first cell", peer="import torch", ours=tuple(ours), theirs=tuple(theirs)
        )
    ]


def _load_and_run(directory: Path) -> float:
    with kernel(directory, load=False) as notebook:

        def load_and_run() -> None:
            load = notebook.send("%load_ext nbshm")
            cell = notebook.send("%%parallel nprocs=4\nrank**2")
            notebook.finish(load).check()
            notebook.finish(cell).check()

        return seconds(load_and_run)


def _import_torch(directory: Path) -> float:
    with kernel(directory, load=False) as notebook:
        return seconds(lambda: notebook.run("import torch").check())
