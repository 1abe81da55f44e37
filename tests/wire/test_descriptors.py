from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import socket
from multiprocessing import context, reduction, shared_memory

import pytest

from nbshm.wire.descriptors import collecting_descriptors, received_descriptors

spawn = multiprocessing.get_context("spawn")


def through_a_job(value):
    """Pickle and unpickle a value as a job is, with descriptors that have travelled."""
    with collecting_descriptors() as collected:
        stream = io.BytesIO()
        reduction.dump(value, stream)
    fds = [os.dup(fd) for fd in collected.fds]
    collected.close()
    with received_descriptors(fds):
        return pickle.loads(stream.getvalue())


def test_a_connection_arrives():
    ours, theirs = spawn.Pipe(duplex=False)
    with ours, theirs, through_a_job(theirs) as arrived:
        arrived.send("hello")
        assert ours.recv() == "hello"


def test_an_object_may_be_closed_before_the_job_has_gone():
    ours, theirs = spawn.Pipe(duplex=False)
    with collecting_descriptors() as collected:
        pickled = reduction.ForkingPickler.dumps(theirs)
    theirs.close()
    with received_descriptors(list(collected.fds)):
        arrived = pickle.loads(pickled)
    with ours, arrived:
        arrived.send("late")
        assert ours.recv() == "late"


def test_what_is_unpickled_twice_has_two_descriptors():
    ours, theirs = socket.socketpair()
    with ours, theirs, collecting_descriptors() as collected:
        pickled = bytes(reduction.ForkingPickler.dumps(theirs))
    with received_descriptors(list(collected.fds)):
        arrived = [pickle.loads(pickled), pickle.loads(pickled)]
    assert arrived[0].fileno() != arrived[1].fileno()
    for one in arrived:
        one.close()


@pytest.mark.parametrize("make", [spawn.Lock, spawn.RLock, spawn.Semaphore, spawn.Event, spawn.Condition])
def test_what_processes_synchronise_by_arrives(make):
    assert type(through_a_job(make())).__name__ == type(make()).__name__


def test_a_queue_arrives():
    queue = spawn.SimpleQueue()
    through_a_job(queue).put("item")
    assert queue.get() == "item"
    queue.close()


def test_shared_memory_arrives():
    memory = shared_memory.SharedMemory(create=True, size=8)
    arrived = through_a_job(memory)
    arrived.buf[0] = 7
    assert memory.buf[0] == 7
    arrived.close()
    memory.close()
    memory.unlink()


def test_an_error_leaves_nothing_open():
    ours, theirs = spawn.Pipe()
    with ours, theirs:
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # they are no paths
        with pytest.raises(TypeError), collecting_descriptors():
            reduction.ForkingPickler.dumps((ours, (x for x in ())))
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208  # they are no paths


def test_the_spawning_popen_of_before_is_back_afterwards():
    assert context.get_spawning_popen() is None
    with collecting_descriptors():
        assert context.get_spawning_popen() is not None
    assert context.get_spawning_popen() is None
