"""Nothing that looks at a tensor's memory ever looks at freed memory, however the tensor is shared.

Each way of holding a view is tried with each way of sharing; then other tensors take what memory is free,
and the views are read.
"""

from __future__ import annotations

import pytest
from kernels import Kernel

SETUP = """
import ctypes, gc, multiprocessing
import matplotlib; matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np, pandas as pd, torch
BIG = 1 << 19
class Holder:
    pass
def closure(view):
    return lambda: view
def default(view):
    def read(view=view): return view
    return read
def generator(view):
    while True: yield view
def started(view):
    running = generator(view)
    next(running)
    return lambda: next(running)
def frame(view):
    table = pd.DataFrame({"a": view}, copy=False)
    return lambda: table["a"].to_numpy()
def line(view):
    drawn, = plt.plot(view)
    drawn._yorig = view
    return drawn.get_ydata
def attribute(view):
    holder = Holder()
    holder.view = view
    return lambda: holder.view
def memory(view):
    exported = memoryview(view)
    return lambda: np.asarray(exported)
def raw(view):
    exported = (ctypes.c_float * BIG).from_buffer(view)
    return lambda: np.frombuffer(exported, np.float32)
def tensor_over(view):
    other = torch.from_numpy(view)
    return lambda: other.numpy()
def cycle(view):
    made = [view]
    made.append(made)
    return lambda: made[0]
holds = {
    "a list": lambda tensor: closure([tensor.numpy()]),
    "a closure": lambda tensor: closure(tensor.numpy()),
    "a default": lambda tensor: default(tensor.numpy()),
    "a generator's frame": lambda tensor: started(tensor.numpy()),
    "a frame": lambda tensor: frame(tensor.numpy()),
    "a line": lambda tensor: line(tensor.numpy()),
    "an attribute": lambda tensor: attribute(tensor.numpy()),
    "a memoryview": lambda tensor: memory(tensor.numpy()),
    "a ctypes array": lambda tensor: raw(tensor.numpy()),
    "another tensor": lambda tensor: tensor_over(tensor.numpy()),
    "a cycle": lambda tensor: cycle(tensor.numpy()),
    "part of it": lambda tensor: closure(tensor[:].numpy()),
    "DLPack": lambda tensor: closure(np.from_dlpack(tensor)),
    "torch's DLPack": lambda tensor: closure(torch.from_dlpack(tensor)),
    "a masked array": lambda tensor: closure(np.ma.array(tensor.numpy(), copy=False)),
}
def mean(view):
    return float(np.asarray(view[0] if type(view) is list else view).mean())
def fill(*tensors):
    for tensor in tensors: tensor.fill_(3)
tensors = {way: {name: torch.ones(BIG) for name in holds} for way in ("cell", "plain", "method", "result")}
readers = {way: {name: hold(tensors[way][name]) for name, hold in holds.items()} for way in tensors}
small = {name: torch.ones(9) for name in holds if name != "a ctypes array"}
small_readers = {name: holds[name](tensor) for name, tensor in small.items()}
gone = torch.ones(BIG)
gone.numpy()
named = torch.ones(BIG)
view = named.numpy()
mine = tensors["result"]
"""

SHARE = [
    "%%parallel nprocs=2\nfill(*tensors['cell'].values(), named, *small.values())",
    "for tensor in tensors['method'].values(): tensor.share_memory_()",
    (
        "context = multiprocessing.get_context('forkserver')\n"
        "process = context.Process(target=fill, args=tuple(tensors['plain'].values()))\n"
        "process.start(); process.join(50); assert process.exitcode == 0"
    ),
    "%%parallel nprocs=1 out=back\nfill(*mine.values()); back = mine",
]

READ = """
gc.collect()
others = [torch.full((BIG,), -7.0) for _ in range(40)]
means = {way: {name: mean(read()) for name, read in made.items()} for way, made in readers.items()}
"""

NAMES = [
    "a list",
    "a closure",
    "a default",
    "a generator's frame",
    "a frame",
    "a line",
    "an attribute",
    "a memoryview",
    "a ctypes array",
    "another tensor",
    "a cycle",
    "part of it",
    "DLPack",
    "torch's DLPack",
    "a masked array",
]


@pytest.fixture(scope="module")
def means(shared_notebook: Kernel) -> dict[str, dict[str, float]]:
    shared_notebook.run(SETUP).check()
    shared_notebook.run("named.numpy()").check()
    for cell in SHARE:
        shared_notebook.run(cell).check()
    shared_notebook.run(READ).check()
    found = shared_notebook.value("means")
    assert isinstance(found, dict)
    assert set(found["cell"]) == set(NAMES)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_view_sees_what_a_cell_wrote(means: dict[str, dict[str, float]], name: str) -> None:
    assert means["cell"][name] == means["result"][name] == 3


@pytest.mark.parametrize("name", NAMES)
def test_a_view_keeps_its_memory_when_plain_torch_moves_the_tensor(
    means: dict[str, dict[str, float]], name: str
) -> None:
    assert means["plain"][name] == means["method"][name] == 1


@pytest.mark.usefixtures("means")
def test_the_tensors_themselves_have_what_was_written(shared_notebook: Kernel) -> None:
    shared_notebook.run(
        "assert all(t.eq(3).all() for way in ('cell', 'plain', 'result') for t in tensors[way].values())\n"
        "assert all(t.eq(3).all() for t in (named, *small.values(), *back[0].values()))\n"
        "assert all(mean(read()) == 3 for read in small_readers.values())\n"
        "assert view.mean() == Out[max(Out)].mean() == 3\n"
        "assert all(t.is_shared() for way in ('plain', 'method') for t in tensors[way].values())"
    ).check()


@pytest.mark.usefixtures("means")
def test_memory_that_nobody_looks_at_any_more_is_moved(shared_notebook: Kernel) -> None:
    shared_notebook.run("%%parallel nprocs=1\ngone.fill_(3);").check()
    shared_notebook.run("assert gone.is_shared() and gone.eq(3).all() and not named.is_shared()").check()


def test_what_lies_in_a_segment_is_shared_as_it_is(shared_notebook: Kernel) -> None:
    shared_notebook.run("import torch; t = torch.zeros(9); net = torch.nn.Linear(2, 2)").check()
    shared_notebook.run("%%parallel nprocs=1\nt, net;").check()
    shared_notebook.run(
        "address = t.data_ptr()\n"
        "assert t.is_shared() and t.share_memory_() is t and t.data_ptr() == address\n"
        "assert net.share_memory() is net and net.weight.is_shared()\n"
        "fresh = torch.zeros(9)\n"
        "assert not fresh.is_shared() and fresh.share_memory_().is_shared()"
    ).check()
