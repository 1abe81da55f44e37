"""What a producer of the notebook has put on a queue is there when the producer has ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kernels import Kernel

SETUP = """
import concurrent.futures, gc, multiprocessing as mp, os, psutil, time, torch, torch.multiprocessing as tmp
from torch.utils.data import DataLoader, Dataset
def produce(queue):
    shared = torch.ones(2).share_memory_()
    queue.put({"two": [shared, shared[1:]], "fresh": torch.full((3,), 1.0), "none": torch.zeros(0)})
def produce_nested(queue, method):
    process = mp.get_context(method).Process(target=produce, args=(queue,))
    process.start(); process.join()
def check(queue):
    got = queue.get()
    shared, view = got["two"]
    view.fill_(5)
    assert shared.tolist() == [1, 5] and got["fresh"].tolist() == [1, 1, 1] and got["none"].shape == (0,)
def make(x): return torch.full((2,), float(x))
def send_back(inbox, outbox):
    for buffer in iter(inbox.get, None):
        buffer += 1
        outbox.put(buffer)
class Items(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.full((1000,), float(i))
def tell_manager(queue):
    torch.zeros(2).share_memory_()
    (manager,) = psutil.Process().children()
    queue.put(manager.pid)
def until_managers_end():
    "Wait as long as torch's manager needs to notice that the process has ended which it was for."
    if tmp.get_sharing_strategy() != "file_system": return
    queue = mp.get_context("forkserver").SimpleQueue()
    process = mp.get_context("forkserver").Process(target=tell_manager, args=(queue,))
    process.start(); process.join()
    until(lambda pid=queue.get(): not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie")
def until(holds):
    limit = time.monotonic() + 20
    while not holds(): assert time.monotonic() < limit; time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def notebook(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run(SETUP).check()
    return shared_notebook


def keeper_of(kernel: Kernel) -> int:
    """Return the process id of a kernel's keeper."""
    (found,) = (
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"nbshm/bystanders/keeper.py" in path.read_bytes()
        and f"PPid:\t{kernel.pid}\n" in (path.parent / "status").read_text()
    )
    return found


@pytest.mark.parametrize(
    ("strategy", "method"),
    [
        ("file_descriptor", "spawn"),
        ("file_descriptor", "forkserver"),
        ("file_descriptor", "fork"),
        ("file_system", "forkserver"),
        ("file_system", "fork"),
    ],
)
def test_queues_and_pipes_have_what_an_ended_producer_sent(
    notebook: Kernel, method: str, strategy: str
) -> None:
    notebook.run(f"%shm_strategy {strategy}\nmethod = {method!r}").check()
    notebook.run("""
context = mp.get_context(method)
queues = [context.Queue(), context.SimpleQueue()]
producers = [context.Process(target=produce, args=(queue,)) for queue in queues]
for producer in producers: producer.start()
for producer in producers: producer.join(30)
until_managers_end()
for queue in queues: check(queue)
""").check()


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_so_has_a_queue_of_grandchildren_and_of_ranks(notebook: Kernel, strategy: str) -> None:
    notebook.run(f"%shm_strategy {strategy}").check()
    notebook.run("""
context = mp.get_context("forkserver")
queue = context.SimpleQueue()
process = context.Process(target=produce_nested, args=(queue, "spawn"))
process.start(); process.join(30)
check(queue)
""").check()
    notebook.run("%%parallel nprocs=2\nproduce(queue) if rank else produce_nested(queue, 'spawn')").check()
    notebook.run("until_managers_end(); check(queue); check(queue)").check()


def test_results_of_pools_are_there_when_the_pool_has_gone(notebook: Kernel) -> None:
    notebook.run("""
with mp.get_context("forkserver").Pool(2) as pool:
    results = [pool.apply_async(make, (i,)) for i in range(5)]
    pool.close(); pool.join()
assert [result.get().tolist() for result in results] == [[float(i)] * 2 for i in range(5)]
with concurrent.futures.ProcessPoolExecutor(2, mp_context=mp.get_context("spawn")) as executor:
    futures = [executor.submit(make, i) for i in range(5)]
assert [future.result().tolist() for future in futures] == [[float(i)] * 2 for i in range(5)]
""").check()


def test_buffers_that_are_sent_back_are_the_same_memory(notebook: Kernel) -> None:
    notebook.run("%shm_strategy file_descriptor\nours = torch.zeros(1_000_000)").check()
    notebook.run("%%parallel nprocs=1\nours[0] = 10").check()  # from now on in a segment
    notebook.run("""
context = mp.get_context("forkserver")
inbox, outbox = context.Queue(), context.Queue()
process = context.Process(target=send_back, args=(inbox, outbox))
process.start()
plain = torch.zeros(1_000_000)
for buffer in (ours, plain):
    back = buffer
    for turn in range(3):
        inbox.put(back)
        back = outbox.get(timeout=60)
    assert buffer[1] == 3 and back.data_ptr() == buffer.data_ptr()
inbox.put(None)
process.join(30)
""").check()
    notebook.run("inbox.put(ours); inbox.put(plain); inbox.put(None)").check()
    notebook.run("%%parallel nprocs=1\nsend_back(inbox, outbox)").check()
    notebook.run("""
for buffer in (ours, plain):
    assert outbox.get(timeout=60).data_ptr() == buffer.data_ptr() and buffer[1] == 4
""").check()


def test_what_nobody_has_taken_goes_with_the_queue(notebook: Kernel) -> None:
    fds = f"/proc/{keeper_of(notebook)}/fd"
    notebook.run("gc.collect()").check()
    before = len(os.listdir(fds))  # noqa: PTH208  # numbers
    notebook.run(f"""
queue = mp.get_context("spawn").Queue()
producer = mp.get_context("spawn").Process(target=produce, args=(queue,))
producer.start(); producer.join()
assert len(os.listdir({fds!r})) > {before}
del queue, producer
for method in ("fork", "forkserver"):
    loader = DataLoader(Items(), batch_size=4, num_workers=2, multiprocessing_context=method)
    assert next(iter(loader)).shape == (4, 1000)
del loader
gc.collect()
until(lambda: len(os.listdir({fds!r})) <= {before})
""").check()
