"""Twenty starts of each form in a row leave nothing behind."""

from __future__ import annotations

import pytest
from leaks import traced_kernel

SETUP = """
import concurrent.futures, gc, multiprocessing as mp
mp.set_forkserver_preload([PRELOAD])
class Row:
    def __init__(self, x): self.x = x
def put(queue, x): queue.put(Row(x))
def row(x): return Row(x)
def process(context):
    queue = context.Queue()
    process = context.Process(target=put, args=(queue, 3))
    process.start()
    assert queue.get(timeout=60).x == 3
    process.join(60)
    process.close(); queue.close(); queue.join_thread()
def pool(context):
    with context.Pool(1) as pool:
        assert pool.apply(row, (2,)).x == 2
        pool.close(); pool.join()
def executor(context):
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
        assert executor.submit(row, 2).result(60).x == 2
def failing(context):
    try: context.Process(target=lambda: 1).start()
    except Exception: pass
    else: raise AssertionError
def many(form, method, count=20):
    for _ in range(count): globals()[form](mp.get_context(method))
    gc.collect()
"""
TORCH = """
import torch
def put_tensor(queue): queue.put(torch.ones(3))
def tensors(context):
    queue = context.SimpleQueue()
    for taken in (True, False):
        process = context.Process(target=put_tensor, args=(queue,))
        process.start(); process.join(60); process.close()
        if taken: assert queue.get().sum() == 3
    queue.close()
"""


@pytest.mark.parametrize(
    ("method", "forms", "preload", "setup"),
    [
        ("forkserver", ["process", "pool", "executor", "failing"], "", SETUP),
        pytest.param("forkserver", ["tensors"], '"torch"', SETUP + TORCH, marks=pytest.mark.soak),
        pytest.param("spawn", ["process", "pool", "executor"], "", SETUP, marks=pytest.mark.soak),
        pytest.param("spawn", ["tensors"], "", SETUP + TORCH, marks=pytest.mark.soak),
    ],
)
def test_twenty_starts_leave_nothing(
    tmp_path, method: str, forms: list[str], preload: str, setup: str
) -> None:
    with traced_kernel(tmp_path) as traces:
        traces.kernel.run(setup.replace("PRELOAD", preload)).check()
        for form in forms:
            traces.kernel.run(f"many({form!r}, {method!r}, 1)", timeout=100).check()
        before = traces.footprint()
        for form in forms:
            traces.kernel.run(f"many({form!r}, {method!r})", timeout=100).check()
        traces.wait_for_no_more_than(before)
