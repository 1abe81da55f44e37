"""Plain multiprocessing in cells: its children have the notebook's functions and classes."""

from __future__ import annotations

import contextlib
import os
import select

import pytest
from kernels import Kernel

SETUP = """
import concurrent.futures, dataclasses, enum, multiprocessing as mp, os, sqlite3, threading
import torch, torch.multiprocessing as tmp
assert mp.get_start_method(allow_none=True) is None
class Colour(enum.Enum):
    RED = 1
@dataclasses.dataclass(frozen=True)
class Row:
    x: int
    colour: Colour = Colour.RED
class Guarded:
    guard = threading.Lock()
    def get(self): return 1
class Local:
    if os.getpid() != KERNEL: raise RuntimeError("only in the notebook")
    def get(self): return 1
db, big = sqlite3.connect(":memory:"), bytearray(80_000_000)
first, second = bytearray(40_000_000), bytearray(41_000_000)
model = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(100)])
tensor = torch.zeros(2)
def square(x): return x * x
def row(x): return Row(x)
def both(): return len(first), len(second)
def use_db(): return db.execute("select 1").fetchall()
def use_big(): return len(big)
def use_model(): return model(torch.zeros(1, 2))
def use_guarded(): return Guarded().get()
def use_local(): return Local().get()
def take(thing): return thing.get()
def write(): tensor.fill_(5)
def start(value):
    global setting
    setting = value
def set_earlier(x): return setting + x
def put(queue, x): queue.put(row(x))
def fill(shared, i): shared[i] = Row(i)
def outcome(result, limit=60):
    try: return result.get(limit)
    except mp.TimeoutError: raise
    except Exception as error: return f"{type(error).__name__}: {error}"
"""


@pytest.fixture(scope="module")
def notebook(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run(SETUP.replace("KERNEL", str(shared_notebook.pid))).check()
    return shared_notebook


@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
def test_pools_run_what_the_notebook_defines(notebook: Kernel, method: str) -> None:
    notebook.run(f"context = mp.get_context({method!r})").check()
    notebook.run("""
with context.Pool(2, start, (5,), maxtasksperchild=3) as pool:
    assert pool.map(square, range(8), chunksize=1) == [x * x for x in range(8)]
    assert pool.map(set_earlier, range(3)) == [5, 6, 7]
    rows = list(pool.imap(row, range(3)))
assert rows == [Row(0), Row(1), Row(2)] and all(type(r) is Row and r.colour is Colour.RED for r in rows)
with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
    assert list(executor.map(row, range(2))) == [Row(0), Row(1)]
""").check()


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_processes_run_what_the_notebook_defines(notebook: Kernel, method: str) -> None:
    notebook.run(f"""
context = mp.get_context({method!r})
queue = context.Queue()  # a global, so that it goes to the child twice: with the notebook and as an argument
process = context.Process(target=put, args=(queue, 3))
process.start()
assert queue.get(timeout=60) == Row(3)
process.join()
class Own(context.Process):
    def run(self):
        write()
        queue.put(square(self.x))
own = Own()
own.x = 4
own.start()
assert queue.get(timeout=60) == 16 and tensor.tolist() == [5.0, 5.0]
own.join()
tensor.zero_()
""").check()


def test_managers_serve_the_notebooks_classes(notebook: Kernel) -> None:
    notebook.run("""
context = mp.get_context("forkserver")
with context.Manager() as manager:
    shared = manager.dict()
    process = context.Process(target=fill, args=(shared, 7))
    process.start(); process.join()
    assert dict(shared) == {7: Row(7)}
del shared, manager
""").check()


def test_torch_spawns_functions_of_the_notebook(notebook: Kernel) -> None:
    notebook.run("""
queue = mp.get_context("spawn").SimpleQueue()
def ranked(rank, queue): queue.put(square(rank))
tmp.spawn(ranked, (queue,), nprocs=2)
assert sorted([queue.get(), queue.get()]) == [0, 1]
class Squares(torch.utils.data.Dataset):
    def __len__(self): return 3
    def __getitem__(self, i): return square(i)
loader = torch.utils.data.DataLoader(Squares(), num_workers=1, multiprocessing_context="forkserver")
assert [batch.item() for batch in loader] == [0, 1, 4]
""").check()


SOUR = """
class Sour:
    def __init__(self): self.a = 1
    def __setstate__(self, state): raise RuntimeError("sour since Monday.")
class Limits:
    low = 1
sour, scale = Sour(), 3.0
def scaled(x): return x * scale + Limits.low
def use_sour(): return sour.a
def use_attribute(): return use_attribute.sour['first']
def use_class(): return Limits.worst.a
def default(x, sour=Sour()): return x
def use_default(): return default(1)
use_attribute.sour, Limits.worst, Limits.low = {"first": Sour()}, Sour(), 2
def outcomes(context):
    with context.Pool(1) as pool:
        used = [use_sour, use_attribute, use_class, use_default]
        return [pool.map(scaled, [1, 2]), *(outcome(pool.apply_async(use)) for use in used)]
"""


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_a_value_that_cant_be_rebuilt_is_missing_alone(notebook: Kernel, method: str) -> None:
    notebook.run(SOUR).check()
    scaled, *told = notebook.value(f"outcomes(mp.get_context({method!r}))")
    assert scaled == [5.0, 8.0]
    reason = "can't be rebuilt in another process: RuntimeError: sour since Monday."
    remedy = "Make it where it is used, or mend how its class is unpickled."
    names = ["sour", "use_attribute.sour", "Limits.worst", "default.sour"]
    assert told == [f"NameError: {name!r} {reason} {remedy}" for name in names]
    assert notebook.run("del sour, Sour, scaled, default, use_default, use_attribute, Limits").check()


def test_a_value_that_cant_be_rebuilt_is_missing_alone_in_executors_and_torchs_spawn(
    notebook: Kernel,
) -> None:
    notebook.run(SOUR).check()
    notebook.run("""
with concurrent.futures.ProcessPoolExecutor(1, mp_context=mp.get_context("forkserver")) as executor:
    assert list(executor.map(scaled, [1, 2])) == [5.0, 8.0]
def put_scaled(rank, queue): queue.put(scaled(rank))
queue = mp.get_context("spawn").SimpleQueue()
tmp.spawn(put_scaled, (queue,), nprocs=1)
assert queue.get() == 2.0
del sour, Sour, scaled, default, use_default, use_attribute, Limits
""").check()


def test_exceptions_whose_init_takes_other_arguments_are_in_children(notebook: Kernel) -> None:
    notebook.run("""
class ApiError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
try: raise ApiError(404, "no answer")
except ApiError as error: last_error = error
def report(x): return last_error.code + x, str(last_error)
with mp.get_context("forkserver").Pool(1) as pool:
    assert pool.map(report, [1]) == [(405, "no answer")]
del last_error, report
""").check()


def test_children_have_children(notebook: Kernel) -> None:
    notebook.run("""
def outer(queue, method):
    with mp.get_context(method).Pool(1) as pool:
        queue.put((pool.map(square, [3]), outcome(pool.apply_async(use_db))))
context = mp.get_context("forkserver")
queue = context.Queue()
process = context.Process(target=outer, args=(queue, "spawn"))
process.start()
squares, told = queue.get(timeout=60)
process.join()
assert squares == [9] and told.startswith("NameError: the notebook's 'db' is not in this process:"), told
""").check()
    reply = notebook.run("""%%parallel nprocs=2
with mp.get_context("spawn").Pool(1) as pool:
    inner = pool.map(square, [rank])
class Inside(torch.utils.data.Dataset):
    def __len__(self): return 2
    def __getitem__(self, i): return square(i + rank)
loader = torch.utils.data.DataLoader(Inside(), num_workers=1, multiprocessing_context="forkserver")
inner, [batch.item() for batch in loader]
""").check()
    assert reply.result["text/plain"] == "[([0], [0, 1]), ([1], [1, 4])]"


def test_a_forkservers_child_ends_with_the_rank_that_started_it(notebook: Kernel, tmp_path) -> None:
    started = tmp_path / "started"
    reply = notebook.run(f"""%%parallel nprocs=1
import signal
def wait_for_ever(queue):
    queue.put((os.getpid(), os.getpgrp()))
    signal.pause()
context = mp.get_context("forkserver")
queue = context.SimpleQueue()
child = context.Process(target=wait_for_ever, args=(queue,))
child.start()
pid, group = queue.get()
assert pid == child.pid and group == os.getpgrp() != {notebook.pid}
open({str(started)!r}, "w").write(str(pid))
os.kill(os.getpid(), signal.SIGKILL)
""")
    assert reply.error is not None
    assert reply.error[0] == "RankDied", reply.text
    with contextlib.suppress(ProcessLookupError):  # it has gone already
        child = os.pidfd_open(int(started.read_text()))
        with os.fdopen(child):
            assert select.select([child], [], [], 10)[0], "the child still runs"


BIG = "it is too big to be copied to every child (over 64 MiB)"
MISSING = "NameError: the notebook's"


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        (
            "use_db",
            (
                f"{MISSING} 'db' is not in this process: sqlite3.Connection holds an open connection. "
                "Open it inside the cell."
            ),
        ),
        (
            "use_big",
            (f"{MISSING} 'big' is not in this process: {BIG}. Pass it to the process as an argument."),
        ),
        (
            "both",
            (f"{MISSING} 'second' is not in this process: {BIG}. Pass it to the process as an argument."),
        ),
        (
            "use_model",
            (
                f"{MISSING} 'model' is not in this process: the storages in it need more than 128 "
                "file descriptors, which each child would be given. Pass it to the process as an argument."
            ),
        ),
        (
            "use_guarded",
            (
                f"{MISSING} 'Guarded.guard' is not in this process: _thread.lock is a lock of threads. "
                "Use nbshm.lock(), or a lock of multiprocessing."
            ),
        ),
        (
            "use_local",
            "NameError: 'Local' could not be made in this process: RuntimeError: only in the notebook.",
        ),
    ],
)
def test_a_task_that_uses_what_could_not_travel_raises(notebook: Kernel, task: str, sentence: str) -> None:
    notebook.run("""
if "waiting_pool" not in globals():
    waiting_pool = mp.get_context("forkserver").Pool(1)
""").check()
    assert notebook.value(f"outcome(waiting_pool.apply_async({task}))") == sentence
    assert notebook.value("outcome(waiting_pool.apply_async(square, (3,)))") == 9


@pytest.mark.parametrize("task", ["Guarded", "take, (Guarded(),)", "take, (Local(),)", "later, (1,)"])
def test_no_task_ends_a_pools_process(notebook: Kernel, task: str) -> None:
    notebook.run("""
if "enduring_pool" not in globals():
    enduring_pool = mp.get_context("forkserver").Pool(1)
    enduring_pid = enduring_pool.apply(os.getpid)
    def later(x): return x
""").check()
    told = notebook.value(f"outcome(enduring_pool.apply_async({task}))")
    assert "NameError" in told, told
    assert "in this process" in told, told
    assert notebook.value("enduring_pool.apply(os.getpid) == enduring_pid")


def test_the_hook_decides_nothing_and_goes_away(notebook: Kernel) -> None:
    notebook.run("""
for name in ("waiting_pool", "enduring_pool"):
    if name in globals():
        globals()[name].terminate(); globals()[name].join()
import multiprocessing.spawn as spawn
from multiprocessing import reduction
assert mp.get_start_method(allow_none=True) is None
hooked = spawn.get_preparation_data
%load_ext nbshm
assert spawn.get_preparation_data == hooked
%reload_ext nbshm
assert spawn.get_preparation_data != hooked
%unload_ext nbshm
assert spawn.get_preparation_data.__module__ == "multiprocessing.spawn"
assert reduction.DupFd.__module__ == "multiprocessing.reduction"
assert "dump" not in vars(reduction.ForkingPickler)
%load_ext nbshm
assert mp.get_context("forkserver").Pool(1).map(square, [2]) == [4]
assert mp.get_start_method(allow_none=True) is None
""").check()


def test_a_file_that_the_kernels_main_names_is_not_run(notebook: Kernel, tmp_path) -> None:
    script = tmp_path / "editor.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    notebook.run(f"""
import sys, importlib.util
main = sys.modules["__main__"]
main.__file__, main.__spec__ = {str(script)!r}, importlib.util.find_spec("json.tool")
for method in ("forkserver", "spawn"):
    with mp.get_context(method).Pool(1) as pool:
        assert pool.map(square, [3]) == [9]
""").check()
    assert notebook.run("%%parallel nprocs=1\nsquare(2)").check().result["text/plain"] == "[4]"
    notebook.run("del main.__file__; main.__spec__ = None").check()
    assert not (tmp_path / "ran").exists()
