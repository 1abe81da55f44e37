"""What was made for forked children reaches a process that is none."""

from __future__ import annotations

import io
import multiprocessing
import pickle
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from multiprocessing import reduction
from pathlib import Path

import pytest

from nbshm.processes.semaphores import semaphore_reducers
from nbshm.refusals import Unsendable
from nbshm.wire.descriptors import collecting_descriptors
from nbshm.wire.transport import Channel

fork = multiprocessing.get_context("fork")

CHILD = """
import pickle, socket, sys
from nbshm.wire.descriptors import received_descriptors
from nbshm.wire.transport import Channel
channel = Channel(socket.socket(fileno=int(sys.argv[1])))
frame = channel.receive()
with received_descriptors(frame.fds):
    shared = pickle.loads(frame.payload)
def step(text=""):
    channel.send(str(text).encode())
    return channel.receive()
exec(sys.argv[2])
step("done")
"""


@pytest.fixture(scope="module", autouse=True)
def heap():
    """Hold a block of the heap that multiprocessing keeps for shared values: else it comes and goes."""
    yield (value := fork.Value("i", 0))
    del value


def pickled(value, files=None):
    files = [] if files is None else files
    with collecting_descriptors() as collected:
        stream = io.BytesIO()
        pickler = reduction.ForkingPickler(stream)
        pickler.dispatch_table.update(semaphore_reducers(files.append))
        pickler.dump(value)
    return stream.getvalue(), collected


@contextmanager
def child_with(value, code):
    """Run code in a fresh interpreter that has got the value as `shared`; yields what steps the child on."""
    payload, collected = pickled(value)
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", CHILD, str(theirs.fileno()), code]
    child = subprocess.Popen(command, pass_fds=[theirs.fileno()])
    theirs.close()
    channel = Channel(ours)
    channel.send(payload, collected.fds)
    collected.close()

    def step():
        frame = channel.receive()
        channel.post(b"")
        channel.flush()
        return frame.payload.decode()

    try:
        yield step
    finally:
        channel.close()
        assert child.wait(30) == 0


def test_a_lock_excludes_here_and_there():
    lock = fork.Lock()
    with child_with(lock, "with shared: step('held')\nstep('free')") as step:
        step_on = iter(step, "done")
        assert next(step_on) == "held"
        assert next(step_on) == "free"
        assert lock.acquire(timeout=10)
        lock.release()
        assert list(step_on) == []


def test_a_held_lock_is_seen_by_who_took_its_acquire_before():
    lock = fork.Lock()
    acquire = lock.acquire
    with child_with(lock, "shared.acquire()\nstep('held')\nstep('still held')\nshared.release()") as step:
        assert step() == "held"
        assert not acquire(block=False)
        assert step() == "still held"
        assert acquire(timeout=10)
        assert step() == "done"


def test_a_queue_that_has_been_written_to_goes_on():
    queue = fork.Queue()
    queue.put("before")
    assert queue.get(timeout=10) == "before"  # its feeder thread runs from now on
    queue.put("for the child")
    code = "step(shared.get(timeout=10))\nshared.put('back')\nshared.close()\nshared.join_thread()"
    with child_with(queue, code) as step:
        assert step() == "for the child"
        assert step() == "done"
    assert queue.get(timeout=10) == "back"
    queue.close()
    queue.join_thread()


def test_events_barriers_and_values_arrive():
    event, barrier, value = fork.Event(), fork.Barrier(2), fork.Value("i", 41)
    code = "event, barrier, value = shared\nvalue.value += 1\nevent.set()\nbarrier.wait(10)"
    with child_with((event, barrier, value), code) as step:
        assert event.wait(10)
        barrier.wait(10)
        assert step() == "done"
    assert value.value == 42


def test_a_semaphore_keeps_its_value_and_is_seated_once():
    semaphore = fork.Semaphore(5)
    semaphore.acquire()
    pickled(semaphore)
    assert pickled(semaphore)[0] == pickled(semaphore)[0]
    assert semaphore.get_value() == 4


def test_the_name_goes_with_the_object():
    lock = fork.Lock()
    files = []
    pickled(lock, files)
    pickled(lock, files)
    (file,) = files
    assert Path(file).exists()
    del lock
    assert not Path(file).exists()


def test_a_lock_that_is_held_is_refused_with_the_remedy():
    with pytest.raises(Unsendable, match=r"is held.*get_context\(\"forkserver\"\)"):
        pickled(held())


def held():
    lock = fork.RLock()
    lock.acquire()
    return lock


def test_a_lock_that_is_about_to_be_released_is_waited_for():
    lock = fork.Lock()
    lock.acquire()
    thread = threading.Timer(0.05, lock.release)
    thread.start()
    pickled(lock)
    thread.join()


def test_a_semaphore_that_a_thread_waits_for_is_refused():
    semaphore = fork.Semaphore(0)
    thread = threading.Thread(target=semaphore.acquire)
    thread.start()
    try:
        with pytest.raises(Unsendable, match="a thread of the notebook waits for it"):
            wait_for_refusal(semaphore)
    finally:
        semaphore.release()
        thread.join()


def wait_for_refusal(semaphore):
    """Pickle when the thread has come to wait; whatever happens, not for ever."""
    from nbshm.processes.semaphores import _value_at

    for _ in range(10_000_000):
        if _value_at(semaphore._semlock.handle + 4).value:
            break
    pickled(semaphore)


def test_a_lock_that_a_forked_child_may_hold_is_refused():
    lock = fork.Lock()
    ours, theirs = fork.Pipe()
    child = fork.Process(target=theirs.recv)
    child.start()
    try:
        with pytest.raises(Unsendable, match="some of these still run"):
            pickled(lock)
    finally:
        ours.send(None)
        child.join()
        ours.close()
        theirs.close()


def test_what_was_made_for_spawned_processes_is_left_alone():
    lock = multiprocessing.get_context("spawn").Lock()
    name = lock._semlock.name
    payload, _ = pickled(lock)
    assert name.encode() in payload
    assert pickle.loads(payload)._semlock.name == name
