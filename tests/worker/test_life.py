from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from nbshm.events import Failed, Interrupted
from nbshm.processes.kernel_signals import interrupts_blocked
from nbshm.wire.messages import Setup
from nbshm.wire.readiness import wait_readable
from nbshm.wire.transport import Channel
from nbshm.wire.whereabouts import new_page
from nbshm.worker.kernel_interrupts import KernelInterrupts

WORKER = """
import socket, sys
from nbshm.worker import life
life.main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
"""


class Child:
    """A worker without a launcher: its process, our end of its channel, what it prints, its lifeline."""

    def __init__(self, work: str) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-c", WORKER, str(theirs.fileno()), work]
        path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        with interrupts_blocked():
            self.process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], env={**os.environ, "PYTHONPATH": path}
            )
        theirs.close()
        self.channel = Channel(ours)
        self.stdout, stdout = os.pipe()
        self.stderr, stderr = os.pipe()
        read_end, self.lifeline = os.pipe()
        page = new_page()
        setup = Setup(rank=1, nprocs=2, directory=tempfile.gettempdir())
        self.channel.send(pickle.dumps(setup), [stdout, stderr, read_end, page])
        for fd in (stdout, stderr, read_end, page):
            os.close(fd)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.channel.close()
        for fd in (self.stdout, self.stderr, self.lifeline):
            if fd >= 0:
                os.close(fd)

    def hear(self):
        frame = self.channel.receive()
        return None if frame is None else pickle.loads(frame.payload)


@contextmanager
def worker(work):
    child = Child(work)
    try:
        yield child
    finally:
        child.close()


def test_the_exit_code_is_that_of_the_work():
    with worker("works:exit_three") as child:
        child.channel.send(b"job")
        assert child.process.wait(20) == 3


def test_a_worker_that_is_wanted_for_nothing_ends_quietly():
    with worker("works:exit_three") as child:
        child.channel.close()
        assert child.process.wait(20) == 0


def test_work_that_is_not_there_is_told():
    with worker("no_such_module:run") as child:
        child.channel.send(b"job")
        failed = child.hear()
        assert isinstance(failed, Failed)
        assert (failed.preparing, failed.rank, failed.report.type_name) == (True, 1, "ModuleNotFoundError")
        assert child.process.wait(20) == 1


def test_a_job_that_can_not_be_read_is_told():
    with worker("works:unpickle") as child:
        child.channel.send(b"no pickle")
        assert child.hear().report.type_name == "UnpicklingError"


def test_an_interrupt_that_comes_too_early_waits_until_it_can_be_told():
    with worker("works:exit_three") as child:
        child.process.send_signal(signal.SIGINT)
        assert child.hear() == Interrupted(rank=1)
        assert child.process.wait(20) == 1


def test_an_interrupt_of_the_work_is_told_as_one():
    with worker("works:wait") as child:
        child.channel.send(b"job")
        assert os.read(child.stdout, 100) == b"waiting"
        child.process.send_signal(signal.SIGINT)
        assert child.hear() == Interrupted(rank=1)
        assert child.process.wait(20) == 1


def test_an_interrupt_never_cuts_a_message():
    with worker("works:chatter") as child:
        child.channel.send(b"job")
        assert child.hear().text == "x" * 1_000_000
        child.process.send_signal(signal.SIGINT)
        heard = []
        while (event := child.hear()) is not None:
            heard.append(event)
        assert heard[-1] == Interrupted(rank=1)
        assert {len(event.text) for event in heard[:-1]} <= {1_000_000}


def test_a_worker_dies_with_its_lifeline():
    with worker("works:wait") as child:
        child.channel.send(b"job")
        assert os.read(child.stdout, 100) == b"waiting"
        os.close(child.lifeline)
        child.lifeline = -1
        assert child.process.wait(2) == -signal.SIGKILL


def test_a_big_write_that_is_interrupted_loses_nothing():
    with worker("works:print_much") as child:
        child.channel.send(b"job")
        text = os.read(child.stdout, 1000)
        for _ in range(20):
            child.process.send_signal(signal.SIGUSR1)
            text += os.read(child.stdout, 1000)
        while wait_readable(child.stdout, 20) and (more := os.read(child.stdout, 100_000)):
            text += more
        assert text == b"0123456789" * 100_000


def test_what_is_no_text_is_printed_as_what_it_is():
    with worker("works:print_surrogate") as child:
        child.channel.send(b"job")
        assert os.read(child.stdout, 100) == b"\\udcff"


def test_an_interrupt_in_a_held_block_is_owed():
    interrupts = KernelInterrupts()
    before = signal.getsignal(signal.SIGINT)
    reached = False
    try:
        interrupts.listen()
        with pytest.raises(KeyboardInterrupt), interrupts.held():  # noqa: PT012  # what comes after is the point
            os.kill(os.getpid(), signal.SIGINT)
            reached = True
        assert reached
        assert interrupts.arrived()
    finally:
        signal.signal(signal.SIGINT, before)


def test_no_interrupt_is_owed_where_none_came():
    interrupts = KernelInterrupts()
    with interrupts.held():
        pass
    assert not interrupts.arrived()
