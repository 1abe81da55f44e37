"""Children of plain multiprocessing find the modules that the notebook has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernels import Kernel, kernel

import nbshm

SETUP = """
import sys
sys.path.insert(0, "clone")
%load_ext nbshm
import math, multiprocessing as mp, nbshm, torch.multiprocessing as tmp
from concurrent.futures import ProcessPoolExecutor
def origin(_): return nbshm.__path__[0]
def tell(rank, queue): queue.put(origin(rank))
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel that has the extension from where a fresh interpreter does not look."""
    directory = tmp_path_factory.mktemp("notebook")
    (directory / "clone").mkdir()
    (directory / "clone" / "nbshm").symlink_to(Path(nbshm.__path__[0]))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with kernel(directory, load=False, env=environment) as running:
        running.run(SETUP).check()
        yield running


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_children_find_nbshm_where_the_notebook_has_it_from(notebook: Kernel, method: str) -> None:
    notebook.run(f"""
context = mp.get_context({method!r})
with context.Pool(1) as pool:
    assert pool.map_async(math.sqrt, [4]).get(30) == [2]
    found = pool.map_async(origin, [0]).get(30)
with ProcessPoolExecutor(1, mp_context=context) as executor:
    found += executor.map(origin, [0])
queue = context.SimpleQueue()
tmp.start_processes(tell, (queue,), 1, start_method={method!r})
found += [queue.get()]
""").check()
    assert set(notebook.value("found")) == {str(notebook.directory / "clone" / "nbshm")}
