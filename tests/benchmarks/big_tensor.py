"""A cell that uses a big tensor which is shared already, against the same cell with a tiny one."""

from __future__ import annotations

from pathlib import Path

from benchmarks.samples import Comparison, compare
from kernels import kernel

_PREPARATION = """
import torch
big = torch.ones({nbytes} // 4)
tiny = torch.ones(4)
"""
_CELL = "%%parallel nprocs=4\n{name}[rank] += 1"


def big_tensor(directory: Path, repetitions: int, *, nbytes: int = 1 << 30) -> list[Comparison]:
    """Let the first cell with each pay for its move, and compare those that follow."""
    with kernel(directory) as notebook:
        notebook.run(_PREPARATION.format(nbytes=nbytes)).check()
        big, tiny = (_CELL.format(name=name) for name in ("big", "tiny"))
        notebook.run(big).check()
        notebook.run(tiny).check()
        comparison = compare(
            f"cell with {nbytes >> 20} MiB, shared before",
            lambda: notebook.run(big).check(),
            lambda: notebook.run(tiny).check(),
            peer="the same with 16 bytes",
            repetitions=repetitions,
        )
        assert notebook.value("big[:5].tolist()") == [repetitions + 2] * 4 + [1]
    return [comparison]
