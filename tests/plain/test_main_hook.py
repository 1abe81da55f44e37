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


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_children_find_what_the_notebook_has_imported_in_other_directories(
    notebook: Kernel, method: str
) -> None:
    """In the one where it is, and in the one where it was; a rank's children too."""
    for name in ("before", "after"):
        (notebook.directory / method / name / name).mkdir(parents=True)
        (notebook.directory / method / name / name / "part.py").write_text(f"where = {name!r}")
        (notebook.directory / method / name / f"{name}_alone.py").write_text(f"where = {name!r}")
    notebook.run(f"""
%cd -q {notebook.directory / method / "before"}
import before.part, before_alone
%cd -q ../after
import after.part, after_alone
def modules(_): return [module.where for module in (before.part, before_alone, after.part, after_alone)]
def told():
    with mp.get_context({method!r}).Pool(1) as pool:
        return pool.map_async(modules, [0]).get(30)[0]
found = told()
""").check()
    expected = ["before", "before", "after", "after"]
    assert notebook.value("found") == expected
    ranks = notebook.run(f"%%parallel nprocs=1 start_method={method}\ntold()").check()
    assert ranks.result["text/plain"] == str([expected])


def test_the_forkserver_of_ranks_has_prepared_itself(notebook: Kernel) -> None:
    """It finds nbshm, too; it leads a process group of its own then."""
    reply = notebook.run("%%parallel nprocs=1\nimport os\nos.getpgid(os.getppid()) == os.getppid()").check()
    assert reply.result["text/plain"] == "[True]"
