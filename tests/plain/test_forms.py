"""Every form of plain multiprocessing runs what the notebook defines."""

from __future__ import annotations

import pytest
from kernels import Kernel

SETUP = """
import concurrent.futures, dataclasses, functools, multiprocessing as mp, os
from multiprocessing.managers import BaseManager
@dataclasses.dataclass
class Row:
    x: int
scale = 3
def triple(x): return Row(scale * x)
def add(x, y=0): return x + y
def ready(value):
    global started
    started = value
def with_started(x): return started + x
class Box:
    def __init__(self, n): self.n = n
    def step(self, x): return Row(self.n + x)
class Counter:
    def __init__(self): self.n = 0
    def up(self, by=1): self.n += by; return Row(self.n)
class Own(BaseManager): pass
Own.register("Counter", Counter)
def put(queue, value): queue.put(Row(value))
def processes(context):
    queue = context.Queue()
    process = context.Process(target=put, args=(queue,), kwargs={"value": 3})
    process.start()
    assert queue.get(timeout=60) == Row(3)
    process.join()
    assert process.exitcode == 0
def pools(context):
    with context.Pool(2, ready, (5,)) as pool:
        assert pool.map(triple, range(3)) == [Row(0), Row(3), Row(6)]
        assert list(pool.imap(Box(4).step, range(2))) == [Row(4), Row(5)]
        assert sorted(row.x for row in pool.imap_unordered(triple, range(3))) == [0, 3, 6]
        assert pool.starmap(add, [(1, 2), (3, 4)]) == [3, 7]
        assert pool.apply_async(with_started, (1,)).get(60) == 6
        assert pool.apply(functools.partial(add, y=2), (1,)) == 3
def executors(context):
    options = dict(mp_context=context, initializer=ready, initargs=(7,))
    with concurrent.futures.ProcessPoolExecutor(1, **options) as executor:
        assert list(executor.map(with_started, range(2))) == [7, 8]
        assert type(executor.submit(triple, 2).result()) is Row
def managers(context):
    with Own(ctx=context) as manager:
        counter = manager.Counter()
        assert counter.up() == Row(1) and counter.up(by=2) == Row(3)
    with context.Manager() as manager:
        rows = manager.list([Row(1)])
        process = context.Process(target=rows.append, args=(Row(2),))
        process.start(); process.join()
        assert list(rows) == [Row(1), Row(2)]
def all_forms(method, module=mp):
    context = module.get_context(method)
    for form in (processes, pools, executors, managers): form(context)
def nested(connection, method):
    try:
        all_forms(method)
        connection.send("fine")
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")
"""


@pytest.fixture(scope="module")
def notebook(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run(SETUP).check()
    return shared_notebook


@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
def test_every_form_runs_in_the_notebook(notebook: Kernel, method: str) -> None:
    notebook.run(f"all_forms({method!r})").check()


@pytest.mark.parametrize(("outer", "inner"), [("spawn", "forkserver"), ("forkserver", "spawn")])
def test_every_form_runs_in_a_child(notebook: Kernel, outer: str, inner: str) -> None:
    reply = notebook.run(f"""
context = mp.get_context({outer!r})
ours, theirs = context.Pipe()
process = context.Process(target=nested, args=(theirs, {inner!r}))
process.start(); theirs.close()
print(ours.recv())
process.join(60)
""").check()
    assert reply.stdout == "fine\n"


@pytest.mark.parametrize(
    ("outer", "inner"),
    [("forkserver", "forkserver"), ("spawn", "forkserver"), ("fork", "forkserver"), ("fork", "spawn")],
)
def test_every_form_runs_in_a_rank(notebook: Kernel, outer: str, inner: str) -> None:
    notebook.run(f"%%parallel nprocs=1 start_method={outer}\nall_forms({inner!r})").check()


def test_later_processes_of_a_pool_get_what_the_notebook_has_then(notebook: Kernel) -> None:
    notebook.run("""
def version(_): return 1, os.getpid()
pool = mp.get_context("forkserver").Pool(1, maxtasksperchild=1)
first, pid = pool.apply(version, (0,))
def version(_): return 2, os.getpid()
second = pool.apply(version, (0,))
while second[0] == 1: second = pool.apply(version, (0,))
pool.terminate(); pool.join()
assert first == 1 and second[1] != pid
""").check()
