"""What fails in a child before its work is told where the work is waited for, at once."""

from __future__ import annotations

import pytest
from kernels import Kernel

SETUP = """
import concurrent.futures, multiprocessing as mp, os, pathlib, sqlite3, sys, threading
context = mp.get_context("forkserver")
pathlib.Path("broken_later.py").write_text("def helper(): return 1")
sys.path.insert(0, os.getcwd())
from broken_later import helper
pathlib.Path("broken_later.py").write_text("raise RuntimeError('it was edited')")
db = sqlite3.connect(":memory:")
class Local:
    if os.getpid() != KERNEL: raise RuntimeError("only in the notebook")
    def get(self): return 1
class Picky:
    def __setstate__(self, state): raise ValueError("not like this")
def use_db(*_): return db.execute("select 1")
def use_helper(): return helper()
class Two(Exception):
    def __init__(self, a, b): super().__init__(a)
def raise_two(): raise Two(1, 2)
lock = threading.Lock()
def use_lock():
    with lock: return 1
def square(x): return x * x
def take(thing): return thing.get()
def picky():
    thing = Picky(); thing.x = 1
    return thing
def outcome(result):
    try: return result(60)
    except (mp.TimeoutError, concurrent.futures.TimeoutError): raise
    except Exception as error: return f"{type(error).__name__}: {error}"
"""
DB = (
    "NameError: the notebook's 'db' is not in this process: sqlite3.Connection holds an open connection. "
    "Open it inside the cell."
)
LOCK = (
    "NameError: the notebook's 'lock' is not in this process: _thread.lock is a lock of threads. "
    "Use nbshm.lock(), or a lock of multiprocessing."
)
LOCAL = "NameError: 'Local' could not be made in this process: RuntimeError: only in the notebook."
HELPER = "NameError: 'helper' could not be made in this process: RuntimeError: it was edited."
PICKY = "ValueError: not like this"
TWO = (
    "MaybeEncodingError: Error sending result: 'Two(1)'. Reason: "
    "'TypeError(\"Two.__init__() missing 1 required positional argument: 'b'\")'"
)


@pytest.fixture(scope="module")
def notebook(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run(SETUP.replace("KERNEL", str(shared_notebook.pid))).check()
    return shared_notebook


@pytest.mark.parametrize(
    ("pool", "task", "told"),
    [
        ("context.Pool(1, use_db)", "square, (3,)", DB),
        ("context.Pool(1, take, (Local(),))", "square, (3,)", LOCAL),
        ("context.Pool(1, square, (3,), 1)", "square, (3,)", 9),
        ("context.Pool(1)", "use_helper", HELPER),
        ("context.Pool(1)", "take, (picky(),)", PICKY),
        ("context.Pool(1)", "raise_two", TWO),
        ("context.Pool(1)", "use_lock", LOCK),
    ],
)
def test_tasks_of_a_pool_raise_what_failed_before_them(
    notebook: Kernel, pool: str, task: str, told: object
) -> None:
    """The pool goes on with the same process, which can do what needs none of that."""
    notebook.run(f"pool = {pool}").check()
    assert notebook.value(f"outcome(pool.apply_async({task}).get)") == told
    assert notebook.value(f"outcome(pool.apply_async({task}).get)") == told
    notebook.run("pool.terminate(); pool.join()").check()


def test_the_other_tasks_of_a_map_are_done(notebook: Kernel) -> None:
    notebook.run("""
with context.Pool(1) as pool:
    results = [pool.apply_async(square, (x,)) for x in (1, picky(), 3)]
    told = [outcome(result.get) for result in results]
""").check()
    assert notebook.value("told") == [1, PICKY, 9]


def test_an_executor_tells_what_its_task_lacks(notebook: Kernel) -> None:
    notebook.run("""
with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
    tasks = (use_db,), (take, Local()), (use_helper,), (raise_two,)
    told = [outcome(executor.submit(*task).result) for task in tasks]
""").check()
    assert notebook.value("told") == [DB, LOCAL, HELPER, TWO]


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_the_other_tasks_of_an_executor_are_done(notebook: Kernel, method: str) -> None:
    notebook.run(f"""
with concurrent.futures.ProcessPoolExecutor(1, mp_context=mp.get_context({method!r})) as executor:
    futures = [executor.submit(task, argument) for task, argument in
               ((square, 1), (take, picky()), (take, [picky()]), (square, 3))]
    told = [outcome(future.result) for future in futures]
    mapped = outcome(lambda _: list(executor.map(take, [picky(), picky()], chunksize=2)))
""").check()
    assert notebook.value("told") == [1, PICKY, PICKY, 9]
    assert notebook.value("mapped") == PICKY


def test_an_executor_whose_initializer_fails_ends(notebook: Kernel) -> None:
    reply = notebook.run("""
with concurrent.futures.ProcessPoolExecutor(1, mp_context=context, initializer=use_db) as executor:
    executor.submit(square, 3).result(60)
""")
    assert reply.error is not None
    assert reply.error[0] == "BrokenProcessPool"


def test_torch_tells_what_a_rank_or_a_loaders_worker_lacks(notebook: Kernel) -> None:
    notebook.run("""
import torch, torch.multiprocessing as tmp
from torch.utils.data import DataLoader, Dataset
class FromDb(Dataset):
    def __len__(self): return 2
    def __getitem__(self, i): return use_db()
""").check()
    reply = notebook.run("tmp.spawn(use_db, nprocs=1)")
    assert reply.error is not None
    assert reply.error[0] == "ProcessRaisedException"
    assert DB in reply.error[1]
    loader = "DataLoader(FromDb(), num_workers=1, multiprocessing_context='forkserver')"
    reply = notebook.run(f"list({loader})")
    assert reply.error is not None
    assert reply.error[0] == "NameError"
    assert DB.removeprefix("NameError: ") in reply.error[1]


def test_a_child_that_starts_no_process_itself_leaves_the_packing_of_definitions_alone(
    notebook: Kernel,
) -> None:
    notebook.run("""
def loaded(): return {"nbshm.packing", "cloudpickle"} & set(sys.modules)
with mp.get_context("spawn").Pool(1) as pool: found = pool.apply(loaded)
""").check()
    assert notebook.value("found") == set()
