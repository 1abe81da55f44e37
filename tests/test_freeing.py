"""Memory that a run has replaced, or that the notebook has dropped, is freed without a garbage collection."""

from __future__ import annotations

import pytest
from kernels import Kernel

SETUP = """
import gc, weakref, numpy as np
gc.collect()
gc.disable()
moved, kept, thinned = np.ones(1000), [np.ones(1000)], np.ones(100000)[::100]
class Box:
    def __init__(self, array): self.array = array
    def total(self): return helper(self.array)
def helper(array): return array.sum()
box = Box(np.ones(1000))
gone = [weakref.ref(kept[0]), weakref.ref(box.array)]
"""


@pytest.mark.parametrize("method", ["forkserver", "fork"])
def test_no_array_outlives_a_run_until_a_garbage_collection(notebook: Kernel, method: str):
    notebook.run(SETUP).check()
    notebook.run("import torch").check()  # its import makes cycles of the frames that it runs in
    notebook.run(
        f"%%parallel nprocs=2 start_method={method}\n"
        "moved[rank] = kept[0][rank] = 5; box.total(); thinned.sum()"
    ).check()
    assert notebook.value("(float(moved[1]), float(kept[0][1]))") == (5, 5)
    notebook.run("del kept[0], box.array").check()
    assert notebook.value("[reference() is None for reference in gone]") == [True, True]


def test_moving_an_array_does_not_double_its_memory(notebook: Kernel):
    notebook.run(
        "import gc, numpy as np, torch\n"
        "gc.collect(); gc.disable()\n"
        "def anonymous():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return int(next(line for line in lines if line.startswith('RssAnon')).split()[1]) >> 10\n"
        "before = anonymous()\n"
        "big = np.ones(20_000_000)"
    ).check()
    assert notebook.value("anonymous() - before > 100") is True
    notebook.run("%%parallel nprocs=2\nbig[rank] = 5").check()
    assert notebook.value("(big[:3].tolist(), anonymous() - before < 50)") == ([5, 5, 1], True)
