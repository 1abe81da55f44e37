from __future__ import annotations

import os
import signal
import subprocess

from nbshm.machine.proc import has_children, is_stopped, processor_seconds, resident_memory

NOBODY = 2**22 + 1  # above the highest process id that Linux gives


def test_processor_time_is_that_of_a_living_process():
    before = processor_seconds(os.getpid())
    while processor_seconds(os.getpid()) == before:
        pass
    assert processor_seconds(NOBODY) is None


def test_memory_is_that_of_a_living_process():
    assert resident_memory(os.getpid()) > 1 << 20
    assert resident_memory(NOBODY) is None


def test_children_are_those_of_a_living_process():
    assert has_children(os.getppid())
    assert not has_children(NOBODY)


def test_a_process_is_stopped_by_a_signal():
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            assert not is_stopped(process.pid)
            process.send_signal(signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)
            assert is_stopped(process.pid)
        finally:
            process.kill()
    assert not is_stopped(NOBODY)
