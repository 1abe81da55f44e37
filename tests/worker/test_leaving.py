"""What a forked worker leaves behind; run in forked children."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from pathlib import Path

import pytest

from nbshm.worker.leaving import leave_kernel


def in_forked_child(function):
    """Return what the function returns in a forked child."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def run():
        leave_kernel()
        theirs.send(function())

    child = context.Process(target=run)
    child.start()
    assert ours.poll(20)
    answer = ours.recv()
    child.join()
    ours.close()
    theirs.close()
    return answer


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def is_socket(fd):
    return str(Path(f"/proc/self/fd/{fd}").readlink()).startswith("socket:")


def test_the_kernels_doors_are_not_the_childs(listener):
    with socket.create_connection(listener.getsockname()) as client, listener.accept()[0] as accepted:
        fds = [listener.fileno(), accepted.fileno(), client.fileno()]
        assert in_forked_child(lambda: [is_socket(fd) for fd in fds]) == [False, False, True]
        assert all(is_socket(fd) for fd in fds)


def test_connections_of_the_notebooks_own_stay():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert in_forked_child(lambda: theirs.send(b"still here")) == 10
        assert ours.recv(100) == b"still here"


def test_a_descriptor_that_was_a_door_is_still_in_use(listener):
    fd = listener.fileno()
    assert in_forked_child(lambda: str(Path(f"/proc/self/fd/{fd}").readlink())) == os.devnull


def test_signal_handlers_are_the_default_ones_again():
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        assert in_forked_child(lambda: int(signal.getsignal(signal.SIGUSR1))) == int(signal.SIG_DFL)
    finally:
        signal.signal(signal.SIGUSR1, before)
