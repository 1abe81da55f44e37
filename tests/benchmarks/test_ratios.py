"""The benchmarks: real kernels, nbshm and its peers in turns; what they print is their result.

python -m pytest -m benchmark -s tests/benchmarks
"""

from __future__ import annotations

import pytest
from benchmarks import sharing, warm_cell, watching
from benchmarks.big_tensor import big_tensor
from benchmarks.first_cell import first_cell
from benchmarks.memory import memory
from benchmarks.results import results
from benchmarks.samples import table

REPETITIONS = 15

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    "workload",
    [
        warm_cell.forkserver,
        big_tensor,
        first_cell,
        warm_cell.spawn,
        sharing.first_sharing,
        sharing.recycled_sharing,
        sharing.second_cells,
        sharing.mirroring,
        sharing.small_tensors,
        results,
        memory,
        watching.view,
        watching.flood,
        watching.first_row,
    ],
)
def test_ratios(workload, tmp_path):
    print(f"\n{table(workload(tmp_path, REPETITIONS))}")
