"""The memory of kernel and workers with a shared array, against its size (PSS: shared pages are divided).

No worker stands by: it would have its part of the pages of libraries, and of other memory than the array's.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.samples import Comparison
from kernels import Kernel, kernel

_PREPARATION = """
import os, pathlib, numpy as np, nbshm
%parallel standby=0
kernel, none = os.getpid(), np.zeros(8)
pids = nbshm.zeros({nprocs}, "i8")
def pss(pid):
    lines = pathlib.Path(f"/proc/{{pid}}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
"""
_CELL = """%%parallel nprocs={nprocs}
pids[rank] = os.getpid()
total = {name}[rank :: nprocs].sum()
nbshm.barrier()
everyone = sum(map(pss, [kernel, *pids.tolist()])) if rank == 0 else 0
nbshm.barrier()
everyone
"""


def memory(directory: Path, repetitions: int, *, nbytes: int = 1 << 32, nprocs: int = 8) -> list[Comparison]:
    """Measure an array while it is used, while it is moved, and one that is made by `nbshm.zeros`."""
    with kernel(directory) as notebook:
        notebook.run(_PREPARATION.format(nprocs=nprocs)).check()
        without = [_used(notebook, "none", nprocs) for _ in range(repetitions)]
        before = _pss(notebook.pid)
        notebook.run(f"moved = np.ones({nbytes} // 8)", timeout=300).check()
        with _peak(notebook.pid) as peak:
            moved = [_used(notebook, "moved", nprocs) for _ in range(repetitions)]
        notebook.run(f"del moved; made = nbshm.zeros({nbytes} // 8); made[:] = 1", timeout=300).check()
        made = [_used(notebook, "made", nprocs) for _ in range(repetitions)]
    return [
        _comparison("using an array", moved, without, nbytes),
        _comparison("moving it", peak, [before], nbytes),
        _comparison("using one of nbshm.zeros", made, without, nbytes),
    ]


def _comparison(workload: str, used: list[int], without: list[int], nbytes: int) -> Comparison:
    size = nbytes / 2**20
    return Comparison(
        workload=f"memory of {workload}, {size:.0f} MiB",
        peer="the array",
        ours=tuple((each - min(without)) / 2**20 for each in used),
        theirs=(size,) * len(used),
        unit="MiB",
    )


def _used(notebook: Kernel, name: str, nprocs: int) -> int:
    notebook.run(_CELL.format(name=name, nprocs=nprocs), timeout=300).check()
    used = notebook.value("_[0]")
    assert isinstance(used, int)
    return used


@contextmanager
def _peak(pid: int) -> Iterator[list[int]]:
    """Give a list that has the highest PSS of a process once this has been left."""
    found, ended = [], threading.Event()
    highest: list[int] = []

    def look() -> None:
        while not ended.wait(0.005):
            found.append(_pss(pid))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield highest
    finally:
        ended.set()
        thread.join()
        highest.append(max(found, default=_pss(pid)))


def _pss(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
