"""Old memory that is given back while what it was moved for goes on."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import weakref

import pytest
import torch
from memory_notebook import Notebook

from nbshm.memory.ownership.address_space import resident
from nbshm.memory.placing import carry_out
from nbshm.memory.shared import releasing
from nbshm.memory.shared.releasing import release, wait_until_released

NBYTES = 64 << 20
LIMIT = 60


class Holder:
    """The last holder of some memory, in which `nbytes` from `start` on are its own."""

    def __init__(self, *, start: int = 0, nbytes: int = NBYTES) -> None:
        self.memory = mmap.mmap(-1, nbytes + 4 * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.memory.madvise(mmap.MADV_NOHUGEPAGE)
        self.nbytes = nbytes
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory)) + start
        ctypes.memset(self.address - start, 7, len(self.memory))


@pytest.fixture
def held(monkeypatch):
    """Hold releases back until this event is set."""
    go, advise = threading.Event(), releasing.advise

    def wait_and_advise(*advice):
        assert go.wait(LIMIT)
        return advise(*advice)

    monkeypatch.setattr(releasing, "advise", wait_and_advise)
    yield go
    go.set()
    wait_until_released()


def test_the_pages_are_given_back_and_then_their_holder():
    holder = Holder()
    memory, address, gone = holder.memory, holder.address, weakref.ref(holder)
    assert resident(address, NBYTES) == NBYTES
    release(holder, address=address, nbytes=NBYTES)
    del holder
    wait_until_released()
    assert resident(address, NBYTES) == 0
    assert gone() is None
    del memory


def test_what_else_lies_in_the_first_page_and_the_last_stays():
    holder = Holder(start=100)
    release(holder, address=holder.address, nbytes=NBYTES)
    wait_until_released()
    assert holder.memory[:100] == b"\7" * 100
    end = 100 + NBYTES
    assert holder.memory[end:] == b"\7" * (len(holder.memory) - end)
    assert not any(holder.memory[mmap.PAGESIZE : NBYTES])


def test_nobody_waits_for_a_release(held):
    holder = Holder()
    gone = weakref.ref(holder)
    release(holder, address=holder.address, nbytes=NBYTES)
    del holder
    assert gone() is not None
    held.set()
    wait_until_released()
    assert gone() is None


def test_a_little_is_left_to_its_holder():
    holder = Holder(nbytes=1 << 20)
    before = threading.enumerate()
    release(holder, address=holder.address, nbytes=1 << 20)
    assert threading.enumerate() == before
    assert resident(holder.address, 1 << 20) == 1 << 20


def test_without_another_thread_the_memory_is_left_to_its_holder(monkeypatch):
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    holder = Holder()
    gone = weakref.ref(holder)
    monkeypatch.setattr(threading.Thread, "start", start)
    release(holder, address=holder.address, nbytes=NBYTES)
    del holder
    assert gone() is None


def test_a_forked_child_shares_nothing_that_is_being_released(held):
    os.register_at_fork(before=held.set)  # what is registered last is called first
    holder = Holder()
    address = holder.address
    release(holder, address=address, nbytes=NBYTES)
    pid = os.fork()
    if pid == 0:
        os._exit(resident(address, NBYTES) != 0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_old_memory_is_free_before_more_is_filled(notebook: Notebook, monkeypatch):
    """Room is made for one of them only."""
    first, second = notebook["first"], notebook["second"] = torch.ones(NBYTES // 4), torch.ones(NBYTES // 4)
    addresses = first.data_ptr(), second.data_ptr()
    seen = []

    def wait() -> None:
        wait_until_released()
        seen.append([resident(address, NBYTES) > NBYTES // 2 for address in addresses])

    monkeypatch.setitem(carry_out.__globals__, "wait_until_released", wait)
    notebook.run("first[0] = second[0] = 2", "first", "second")
    assert first[0] == second[0] == 2
    assert seen[0] == [True, True]
    assert sum(seen[1]) == 1
