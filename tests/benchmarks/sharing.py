"""Moving memory and using what has been moved, against what torch, threads and a plain copy take.

What is timed is what a person waits for: from sending the cell to its end. Memory is made beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.samples import Comparison, alternate, compare, rest, touch_free_memory
from kernels import Kernel, kernel

_PREPARATION = """
import concurrent.futures, numpy as np, torch, nbshm
from nbshm.extension import current_session
spares = current_session().segments.spares
length = {nbytes} // 4
array, copy = np.ones(length, "f4"), np.ones(length, "f4")
threads = concurrent.futures.ThreadPoolExecutor(4)
def quarter(array, number):
    return array[number * length // 4 : (number + 1) * length // 4].sum()
"""
_COPY = "np.copyto(copy, array)"
_EMPTY = "%%parallel nprocs={nprocs}\n0;"


def first_sharing(directory: Path, repetitions: int, *, nbytes: int = 1 << 30) -> list[Comparison]:
    """Share a new tensor, in pages that nobody has touched, against torch's own way."""
    with _kernel(directory, nbytes) as notebook:
        return [
            compare(
                f"first sharing of {nbytes >> 20} MiB",
                _cell(notebook, "nbshm.share(new);"),
                _cell(notebook, "new.share_memory_();"),
                peer="share_memory_()",
                repetitions=repetitions,
                before=_making(notebook, nbytes, "spares.clear() or torch.ones(length)"),
            )
        ]


def recycled_sharing(directory: Path, repetitions: int, *, nbytes: int = 1 << 30) -> list[Comparison]:
    """Share what is new, in pages that were used before, against a copy of memory that is there.

    An array and a tensor: what is moved is freed. torch's memory lies in small pages, unless it was told
    otherwise (THP_MEM_ALLOC_ENABLE), or all memory does: freeing it takes as long as the copy, and is a
    thread's work after the cell.
    """
    with _kernel(directory, nbytes) as notebook:
        notebook.run("tensor = torch.ones(length); nbshm.share(tensor);").check()
        return [
            compare(
                f"sharing {nbytes >> 20} MiB in used pages, {kind}",
                _cell(notebook, "new = nbshm.share(new);"),
                _cell(notebook, _COPY),
                peer="np.copyto",
                repetitions=repetitions,
                before=_making(notebook, nbytes, source),
            )
            for kind, source in (("array", 'np.ones(length, "f4")'), ("tensor", "torch.ones(length)"))
        ]


def second_cells(directory: Path, repetitions: int, *, nbytes: int = 1 << 30) -> list[Comparison]:
    """Read an array that is shared already in four workers, against four threads, both less an empty cell."""
    with _kernel(directory, nbytes) as notebook:
        touch_free_memory(8 * nbytes)
        cell = "%%parallel nprocs=4\nfloat(quarter(array, rank));"
        notebook.run(cell).check()
        ours, empty, theirs, nothing = alternate(
            _cell(notebook, cell),
            _cell(notebook, _EMPTY.format(nprocs=4)),
            _cell(notebook, "list(threads.map(quarter, [array] * 4, range(4)));"),
            _cell(notebook, "0;"),
            repetitions=repetitions,
            before=rest,
        )
        return [
            Comparison(
                workload=f"reading {nbytes >> 20} MiB shared before, less an empty cell",
                peer="four threads",
                ours=_less(ours, empty),
                theirs=_less(theirs, nothing),
            )
        ]


def mirroring(directory: Path, repetitions: int, *, nbytes: int = 1 << 30) -> list[Comparison]:
    """Copy an array in and back that a list holds, less an empty cell, against one copy."""
    with _kernel(directory, nbytes) as notebook:
        notebook.run("keep = [array]").check()
        touch_free_memory(8 * nbytes)
        cell = "%%parallel nprocs=2\narray[rank] = rank"
        notebook.run(cell).check()
        ours, empty, theirs = alternate(
            _cell(notebook, cell),
            _cell(notebook, _EMPTY.format(nprocs=2)),
            _cell(notebook, _COPY),
            repetitions=repetitions,
            before=rest,
        )
        return [
            Comparison(
                workload=f"mirroring {nbytes >> 20} MiB, less an empty cell",
                peer="np.copyto",
                ours=_less(ours, empty),
                theirs=theirs,
            )
        ]


def small_tensors(directory: Path, repetitions: int, *, count: int = 20_000) -> list[Comparison]:
    """Hand many small tensors to two workers that sum them, against the sum in the notebook."""
    with _kernel(directory, 1 << 20) as notebook:
        notebook.run(f"many = [torch.ones(16) for _ in range({count})]").check()
        cell = "%%parallel nprocs=2\nsum(float(tensor.sum()) for tensor in many[rank::2])"
        assert notebook.run(cell).check().result == {"text/plain": f"[{8.0 * count}, {8.0 * count}]"}
        return [
            compare(
                f"{count} small tensors summed by two",
                _cell(notebook, cell),
                _cell(notebook, "sum(float(tensor.sum()) for tensor in many)"),
                peer="the notebook alone",
                repetitions=repetitions,
            )
        ]


@contextmanager
def _kernel(directory: Path, nbytes: int) -> Iterator[Kernel]:
    with kernel(directory) as notebook:
        notebook.run(_PREPARATION.format(nbytes=nbytes), timeout=120).check()
        yield notebook


def _cell(notebook: Kernel, source: str) -> Callable[[], object]:
    return lambda: notebook.run(source, timeout=120).check()


def _making(notebook: Kernel, nbytes: int, source: str) -> Callable[[], object]:
    """Return what gives up what was `new` and makes it again, with memory to take for what follows."""

    def make() -> None:
        notebook.run(f"new = None; new = {source}", timeout=120).check()
        touch_free_memory(nbytes)

    return make


def _less(times: tuple[float, ...], empty: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(max(0.0001, time - nothing) for time, nothing in zip(times, empty, strict=True))
