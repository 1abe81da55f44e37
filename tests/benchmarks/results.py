"""Big tensors as results of two workers, against the stock forkserver's writing into tensors of the kernel's.

A parallel cell gives new results each time. So the peer's tensors have to be made too, in shared memory and
before its processes start, which is most of its work. Beside it the peer writes over tensors that were there
before, and so gives nothing new, in pages that are touched: once as it is, when each of its processes imports
torch, and once with torch preloaded. A cell that writes over tensors of the notebook does as much as that.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.samples import Comparison, alternate, touch_free_memory
from kernels import Kernel, kernel

_MAKE = "made = [torch.empty({length}).share_memory_() for _ in range(2)]"
_RETURN = "%%parallel nprocs=2 out=made\nmade = torch.full(({length},), float(rank));"
_WRITE_OVER = "%%parallel nprocs=2\nmade[rank].fill_(rank);"
_THEIR_PREPARATION = "import multiprocessing, torch, squares"
_PRELOAD = 'multiprocessing.set_forkserver_preload(["torch", "squares"])'
_THEIR_WRITING = (
    'torch.multiprocessing.start_processes(squares.fill, args=(made,), nprocs=2, start_method="forkserver");'
)


def results(directory: Path, repetitions: int, *, nbytes: int = 1 << 28) -> list[Comparison]:
    """Compare how long it takes until the notebook has one tensor from each of two workers."""
    shutil.copy(Path(__file__).with_name("squares.py"), directory)
    make, give_back = (source.format(length=nbytes // 4) for source in (_MAKE, _RETURN))
    with ExitStack() as kernels:
        returning, writing, stock, preloaded = (
            kernels.enter_context(kernel(directory, load=load)) for load in (True, True, False, False)
        )
        returning.run("import torch").check()
        writing.run(f"import torch\nmade = [torch.zeros({nbytes // 4}) for _ in range(2)]").check()
        stock.run(f"{_THEIR_PREPARATION}\n{make}").check()
        preloaded.run(f"{_THEIR_PREPARATION}\n{_PRELOAD}\n{make}").check()
        ways = [
            _way(returning, give_back),
            _way(writing, _WRITE_OVER),
            _way(stock, _THEIR_WRITING),
            _way(preloaded, _THEIR_WRITING),
            _way(preloaded, f"{make}\n{_THEIR_WRITING}"),
        ]
        returned, written, as_it_is, old, new = alternate(
            *ways, repetitions=repetitions, before=partial(touch_free_memory, 4 * nbytes)
        )
    returns, writes = (f"{what} 2 x {nbytes >> 20} MiB" for what in ("returning", "writing over"))
    return [
        Comparison(workload=returns, peer="forkserver, new tensors", ours=returned, theirs=new),
        Comparison(workload=returns, peer="forkserver, old tensors", ours=returned, theirs=old),
        Comparison(workload=returns, peer="the same, not preloaded", ours=returned, theirs=as_it_is),
        Comparison(workload=writes, peer="forkserver, old tensors", ours=written, theirs=old),
    ]


def _way(notebook: Kernel, source: str) -> Callable[[], object]:
    """Return what runs a source, which has been seen to do what it should."""

    def run() -> None:
        notebook.run(source, timeout=120).check()

    run()
    assert notebook.value("[int(tensor[-1]) for tensor in made]") == [0, 1]
    return run
