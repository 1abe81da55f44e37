"""Operations that go on in other threads of the notebook while memory is moved."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.pool import ThreadPool

import pytest
import torch
from memory_notebook import Notebook, memory_of

from nbshm.memory.ownership.threads import are_others_at_work

LIMIT = 60


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for a thread that is on its way."""
    limit = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < limit
        os.sched_yield()


def read(descriptor: int, length: int) -> bytes:
    return os.read(descriptor, length)


@contextmanager
def thread_in_an_operation(target: Callable[[int, int], bytes] = read) -> Iterator[None]:
    """Have a thread be in compiled code, which a function here has called, or which is its target."""
    reader, writer = os.pipe()
    with ThreadPoolExecutor(1) as executor:
        executor.submit(target, reader, 1)
        try:
            wait_until(are_others_at_work)
            yield
        finally:
            os.write(writer, b"x")
    os.close(reader)
    os.close(writer)


@contextmanager
def thread_that_waits() -> Iterator[None]:
    """Have a thread wait by means of the standard library, which a function here has called."""
    begun, go = threading.Event(), threading.Event()
    with ThreadPoolExecutor(1) as executor:
        executor.submit(lambda: [begun.set(), go.wait(LIMIT)])
        try:
            assert begun.wait(LIMIT)
            wait_until(lambda: not are_others_at_work())
            yield
        finally:
            go.set()


@pytest.mark.parametrize("target", [read, os.read])
def test_a_thread_in_an_operation_is_at_work(target):
    assert not are_others_at_work()
    with thread_in_an_operation(target):
        assert are_others_at_work()
    assert not are_others_at_work()


def test_a_pool_of_threads_is_at_work_on_compiled_code():
    reader, writer = os.pipe()
    with ThreadPool(1) as pool:
        reading = pool.map_async(functools.partial(os.read, reader), [1])
        wait_until(are_others_at_work)
        os.write(writer, b"x")
        assert reading.get(LIMIT) == [b"x"]
        wait_until(lambda: not are_others_at_work())
    os.close(reader)
    os.close(writer)


def test_a_thread_that_waits_is_not_at_work():
    with thread_that_waits():
        assert not are_others_at_work()


def test_the_old_memory_of_a_tensor_is_kept_while_a_thread_may_work_on_it(notebook: Notebook):
    notebook["t"] = torch.ones(4)
    before = memory_of(notebook["t"])
    with thread_in_an_operation():
        notebook.run("t += 1", "t")
    assert notebook["t"].tolist() == [2] * 4
    storage = notebook["t"].untyped_storage()
    assert storage.memory_before.data_ptr() == before != storage.data_ptr()
    notebook["t"] = torch.ones(4)
    notebook.run("t += 1", "t")
    assert not hasattr(notebook["t"].untyped_storage(), "memory_before")


def test_the_old_memory_is_kept_when_torch_moves_it(notebook: Notebook):
    from nbshm.memory.tensors.plain_torch import PlainTorch

    plain = PlainTorch(notebook.segments, keep=lambda _: None)
    plain.install()
    try:
        tensor = torch.ones(4)
        with thread_in_an_operation():
            tensor.share_memory_()
    finally:
        plain.remove()
    storage = tensor.untyped_storage()
    assert storage.memory_before.data_ptr() != storage.data_ptr()
