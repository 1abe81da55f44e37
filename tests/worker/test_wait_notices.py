"""A rank that waits is noticed, from outside and without a word of its own."""

from __future__ import annotations

import multiprocessing
import queue
import sys
import threading
from multiprocessing import synchronize
from multiprocessing.synchronize import SemLock

import pytest

from nbshm.events import Resumed, Waiting
from nbshm.worker import wait_notices
from nbshm.worker.acquiring import show_acquiring
from nbshm.worker.wait_notices import WaitNotices


class Waiter:
    """A thread that waits for something, and notices that look at it."""

    def __init__(self, wait) -> None:
        self.said: list = []
        self.notices = WaitNotices(3, {__file__: 7}, self.said.append)
        self.thread = threading.Thread(target=wait)

    def look(self) -> None:
        self.notices.look(sys._current_frames().get(self.thread.ident))

    def look_until(self, length: int) -> None:
        """Look again and again until so much has been said."""
        limit = threading.Event()
        timer = threading.Timer(60, limit.set)
        timer.start()
        while len(self.said) < length:
            assert not limit.is_set()
            self.look()
        timer.cancel()
        timer.join()


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(wait_notices, "MOMENT", 0.0)


def test_a_wait_for_a_queue_is_told_once_and_its_end():
    items = multiprocessing.Queue()
    waiter = Waiter(items.get)
    waiter.thread.start()
    waiter.look_until(1)
    for _ in range(5):
        waiter.look()
    assert waiter.said == [Waiting(rank=3, at="something in a queue")]
    items.put(1)
    waiter.thread.join()
    waiter.look()
    assert waiter.said[1:] == [Resumed(rank=3)]
    items.close()
    items.join_thread()


def test_a_wait_for_a_lock_is_told_however_it_is_taken(monkeypatch):
    monkeypatch.setattr(SemLock, "_make_methods", SemLock._make_methods)
    show_acquiring(synchronize)
    lock = multiprocessing.Lock()
    assert lock.acquire(timeout=60)
    assert not lock.acquire(block=False)
    waiter = Waiter(lock.acquire)
    waiter.thread.start()
    waiter.look_until(1)
    assert waiter.said == [Waiting(rank=3, at="a lock, an event or a barrier of multiprocessing")]
    lock.release()
    waiter.thread.join()
    with pytest.raises(TypeError):
        lock.acquire(1, 2, 3)


def test_a_wait_that_is_over_soon_is_not_told(monkeypatch):
    monkeypatch.setattr(wait_notices, "MOMENT", 1e9)
    items = queue.Queue()
    waiter = Waiter(items.get)
    waiter.thread.start()
    for _ in range(5):
        waiter.look()
    items.put(1)
    waiter.thread.join()
    waiter.look()
    assert waiter.said == []


def test_code_of_the_notebook_that_a_library_called_waits_for_nothing():
    go = threading.Event()

    def busy():
        while not go.is_set():
            pass

    waiter = Waiter(lambda: [busy() for _ in "x"])
    waiter.thread.start()
    for _ in range(5):
        waiter.look()
    go.set()
    waiter.thread.join()
    assert waiter.said == []
