"""The benchmarks run: each once, with nothing said about its numbers."""

from __future__ import annotations

import functools

import pytest
from benchmarks import sharing, warm_cell, watching
from benchmarks.big_tensor import big_tensor
from benchmarks.first_cell import first_cell
from benchmarks.memory import memory
from benchmarks.results import results
from benchmarks.samples import Comparison, table

WORKLOADS = [
    warm_cell.forkserver,
    warm_cell.spawn,
    first_cell,
    functools.partial(big_tensor, nbytes=1 << 24),
    functools.partial(sharing.first_sharing, nbytes=1 << 24),
    functools.partial(sharing.recycled_sharing, nbytes=1 << 24),
    functools.partial(sharing.second_cells, nbytes=1 << 24),
    functools.partial(sharing.mirroring, nbytes=1 << 24),
    functools.partial(sharing.small_tensors, count=100),
    functools.partial(results, nbytes=1 << 21),
    functools.partial(memory, nbytes=1 << 26, nprocs=2),
    functools.partial(watching.view, seconds=0.5, crowds=(2,)),
    functools.partial(watching.flood, lines=1000),
    watching.first_row,
]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_benchmark_runs(workload, tmp_path):
    for comparison in workload(tmp_path, 1):
        assert comparison.ratio > 0


def test_a_comparison_shows_medians_ranges_ratio_and_difference():
    comparison = Comparison(
        workload="cell", peer="peer", ours=(0.020, 0.030, 0.040), theirs=(0.010, 0.020, 0.030)
    )
    assert table([comparison]).splitlines() == [
        "workload  nbshm          compared with                 ratio             difference",
        "cell      30 ms (22-38)  peer           20 ms (12-28)  1.50 (1.37-1.90)  +10 ms",
    ]
