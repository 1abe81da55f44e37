"""multiprocessing's own objects that a cell names work in it, or are refused with the remedy."""

from __future__ import annotations

import pytest

METHODS = ("forkserver", "spawn", "fork")
# Who made an object, and the workers that use it: the default ones with all, the others with one each.
PAIRS = [
    *((context, "forkserver") for context in ("", "forkserver", "spawn", "fork")),
    ("", "spawn"),
    ("spawn", "fork"),
]

# What is made, what two ranks do with it, what the notebook finds afterwards.
OBJECTS = {
    "Queue": (
        "made = {context}.Queue()",
        "made.put((rank, 'put'))",
        "sorted([made.get(timeout=20), made.get(timeout=20)]) == [(0, 'put'), (1, 'put')]",
    ),
    "Queue that the notebook has put into": (
        "made = {context}.Queue(); made.put('a'); made.put('b')\nwhile made.qsize() < 2: pass",
        "made.get(timeout=20)",
        "made.empty()",
    ),
    "SimpleQueue": (
        "made = {context}.SimpleQueue()",
        "made.put(rank)",
        "sorted([made.get(), made.get()]) == [0, 1]",
    ),
    "JoinableQueue": (
        "made = {context}.JoinableQueue(); made.put(1); made.put(2)",
        "made.get(timeout=20); made.task_done()",
        "made.join() is None",
    ),
    "Event": ("made = {context}.Event()", "made.set() if rank else made.wait(20)", "made.is_set()"),
    "Lock": (
        "made = {context}.Lock(); count = np.zeros(1)",
        "for _ in range(200):\n    with made:\n        count[0] += 1",
        "bool(count[0] == 400)",
    ),
    "RLock": (
        "made = {context}.RLock(); count = np.zeros(1)",
        "for _ in range(200):\n    with made, made:\n        count[0] += 1",
        "bool(count[0] == 400)",
    ),
    "Semaphore": ("made = {context}.Semaphore(2)", "made.acquire()", "not made.acquire(False)"),
    "Condition": (
        "made = {context}.Condition(); told = np.zeros(1)",
        "with made:\n    told[0] += 1\n    made.notify_all()\n    made.wait_for(lambda: told[0] == 2, 20)",
        "bool(told[0] == 2)",
    ),
    "Barrier": ("made = {context}.Barrier(2)", "made.wait(20)", "made.n_waiting == 0"),
    "Value": ("made = {context}.Value('i', 0)", "with made: made.value += rank + 1", "made.value == 3"),
    "RawValue": ("made = {context}.RawValue('i', 0)", "if rank: made.value = 7", "made.value == 7"),
    "Array": ("made = {context}.Array('d', 2)", "made[rank] = rank + 1", "list(made) == [1, 2]"),
    "RawArray": ("made = {context}.RawArray('d', 2)", "made[rank] = rank + 1", "list(made) == [1, 2]"),
    "Pipe": (
        "near, made = {context}.Pipe()",
        "if rank: made.send(['from', rank])",
        "near.poll(20) and near.recv() == ['from', 1]",
    ),
    "Manager's dict": (
        "manager = {context}.Manager(); made = manager.dict()",
        "made[rank] = 'here'",
        "dict(made) == {{0: 'here', 1: 'here'}} and manager.shutdown() is None",
    ),
}


@pytest.fixture(scope="module")
def prepared(shared_notebook):
    shared_notebook.run(
        "import multiprocessing as mp, numpy as np, torch, torch.multiprocessing as torch_mp\n"
        "from multiprocessing import shared_memory"
    ).check()
    return shared_notebook


@pytest.mark.parametrize(("context", "method"), PAIRS, ids=lambda name: name or "default")
@pytest.mark.parametrize("kind", OBJECTS)
def test_what_multiprocessing_makes_works_whoever_made_it(prepared, kind, context, method):
    make, use, after = OBJECTS[kind]
    prepared.run(make.format(context=f"mp.get_context({context!r})" if context else "mp")).check()
    prepared.run(f"%%parallel nprocs=2 start_method={method}\n{use}\nNone").check()
    assert prepared.value(after.format())


@pytest.mark.parametrize("method", METHODS)
def test_shared_memory_and_its_arrays_work(prepared, method):
    prepared.run("memory = shared_memory.SharedMemory(create=True, size=64)").check()
    prepared.run(
        f"%%parallel nprocs=2 start_method={method}\nnp.ndarray(8, buffer=memory.buf)[rank] = rank + 1\nNone"
    ).check()
    assert prepared.value("np.ndarray(8, buffer=memory.buf)[:2].tolist()") == [1.0, 2.0]
    prepared.run("memory.close(); memory.unlink()").check()


@pytest.mark.parametrize("method", METHODS)
def test_a_tensor_goes_through_a_queue_and_stays_when_its_worker_has_gone(prepared, method):
    prepared.run("tensors = torch_mp.get_context('spawn').Queue()").check()
    prepared.run(f"""%%parallel nprocs=2 start_method={method}
if rank == 0:
    tensors.put(torch.arange(1000.))
else:
    got = tensors.get(timeout=20)
    assert got.sum() == 499500
    got[0] = 1
nbshm.barrier()
None
""").check()


@pytest.mark.parametrize("method", METHODS)
def test_three_thousand_tensors_in_a_list_are_shared(prepared, method):
    prepared.run("many = [torch.zeros(3) for _ in range(3000)]").check()
    prepared.run(
        f"%%parallel nprocs=2 start_method={method}\nfor tensor in many:\n    tensor[rank] = rank + 1\nNone"
    ).check()
    assert prepared.value("{tuple(tensor.tolist()) for tensor in many}") == {(1.0, 2.0, 0.0)}


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
@pytest.mark.parametrize("kind", ["Lock", "Semaphore", "Queue"])
def test_what_a_forked_child_still_uses_is_refused_with_the_remedy(prepared, kind, method):
    prepared.run(
        f"made = mp.get_context('fork').{kind}()\nstop = mp.get_context('fork').Event()\n"
        "child = mp.get_context('fork').Process(target=stop.wait)\nchild.start()"
    ).check()
    reply = prepared.run(f"%%parallel nprocs=2 start_method={method}\nmade")
    prepared.run("stop.set(); child.join(20)").check()
    assert reply.error[0] == "CannotSend", reply.text
    assert "'made" in reply.text
    assert 'mp.get_context("forkserver")' in reply.text


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_a_held_lock_of_the_fork_context_is_refused_with_the_remedy(prepared, method):
    prepared.run("made = mp.get_context('fork').Lock(); made.acquire()").check()
    reply = prepared.run(f"%%parallel nprocs=2 start_method={method}\nmade")
    assert reply.error[0] == "CannotSend", reply.text
    assert "held" in reply.text
    assert 'mp.get_context("forkserver")' in reply.text


def test_what_a_library_has_one_of_is_the_ranks_own_in_the_state_of_the_notebooks(prepared):
    pytest.importorskip("mpmath")
    prepared.run(
        "import mpmath\nfrom mpmath import fp, iv, mp, pi, sqrt\nmp.dps = 30\n"
        "def root(number, context=mp): return context.sqrt(number)"
    ).check()
    prepared.run(
        "%%parallel nprocs=2 out=found\nimport mpmath\n"
        "same = mp is mpmath.mp, fp is mpmath.fp, iv is mpmath.iv, pi is mpmath.pi\n"
        "found = all(same), mp.dps, str(sqrt(2)), str(root(2)), str(+pi)"
    ).check()
    root, pi = "1.41421356237309504880168872421", "3.14159265358979323846264338328"
    assert prepared.value("found") == [(True, 30, root, root, pi)] * 2
