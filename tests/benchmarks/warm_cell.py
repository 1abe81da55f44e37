"""A cell of almost nothing in four fresh workers, against torch's own way to start four processes.

Each runs in a kernel of its own. What is timed is what a person waits for: from sending the cell to its end.
Once with workers that stand by, as they do by default, and once with all made when the cell is run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.samples import Comparison, compare, rest
from kernels import Kernel, kernel

_OUR_CELL = "%%parallel nprocs=4 start_method={method}\nrank**2"
_THEIR_CELL = "torch.multiprocessing.start_processes(squares.square, nprocs=4, start_method={method!r})"
_THEIR_PREPARATION = """
import multiprocessing
import torch
import squares
multiprocessing.set_forkserver_preload(["torch", "squares"])
"""
_THEIR_IMPORTS = "import torch.multiprocessing"
_OUR_IMPORTS = "import nbshm.worker.life, nbshm.worker.work"


def forkserver(directory: Path, repetitions: int) -> list[Comparison]:
    """Compare with torch's processes from a forkserver that has preloaded torch and the function's module."""
    return [_compare(directory, "forkserver", repetitions, standby=standby) for standby in ("auto", "0")]


def spawn(directory: Path, repetitions: int) -> list[Comparison]:
    """Compare with torch's spawned processes, and the imports of four workers of each with one another."""
    imports = compare(
        "of which imports",
        lambda: _import_in_four(_OUR_IMPORTS),
        lambda: _import_in_four(_THEIR_IMPORTS),
        peer=_THEIR_IMPORTS,
        repetitions=repetitions,
    )
    return [_compare(directory, "spawn", repetitions), imports]


def _compare(directory: Path, method: str, repetitions: int, *, standby: str = "auto") -> Comparison:
    with _kernels(directory) as (ours, theirs):
        ours.run(f"%parallel standby={standby}").check()
        cells = _OUR_CELL.format(method=method), _THEIR_CELL.format(method=method)
        assert ours.run(cells[0]).check().result == {"text/plain": "[0, 1, 4, 9]"}
        theirs.run(cells[1]).check()
        return compare(
            f"warm cell, {method}, standby={standby}",
            lambda: ours.run(cells[0]).check(),
            lambda: theirs.run(cells[1]).check(),
            peer=f"start_processes, {method}",
            repetitions=repetitions,
            before=rest,
        )


@contextmanager
def _kernels(directory: Path) -> Iterator[Sequence[Kernel]]:
    shutil.copy(Path(__file__).with_name("squares.py"), directory)
    with kernel(directory) as ours, kernel(directory, load=False) as theirs:
        ours.run("import torch").check()
        theirs.run(_THEIR_PREPARATION).check()
        yield ours, theirs


def _import_in_four(code: str) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [process.wait(timeout=60) for process in processes] == [0] * 4
