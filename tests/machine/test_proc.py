from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from nbshm.machine.proc import (
    has_children,
    is_stopped,
    processor_seconds,
    resident_memory,
    thread_names,
    waits_for_child,
)

NOBODY = 2**22 + 1  # above the highest process id that Linux gives


def test_processor_time_is_that_of_a_living_process():
    before = processor_seconds(os.getpid())
    while processor_seconds(os.getpid()) == before:
        pass
    assert processor_seconds(NOBODY) is None


def test_memory_is_that_of_a_living_process():
    assert resident_memory(os.getpid()) > 1 << 20
    assert resident_memory(NOBODY) is None


def test_threads_have_the_names_that_the_system_knows():
    with Path("/proc/self/task", str(threading.get_native_id()), "comm").open("r+") as file:
        before = file.read()
        file.write("renamed")
        file.flush()
        assert thread_names(os.getpid())[threading.get_native_id()] == "renamed"
        file.write(before)
    assert thread_names(NOBODY) == {}


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


def test_a_process_that_waits_for_a_child_is_seen_to():
    script = "import os, sys; pid = os.posix_spawn('/bin/cat', ['cat'], {}); os.waitpid(pid, 0)"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as process:
        limit = time.monotonic() + 10
        while not waits_for_child(process.pid):
            assert time.monotonic() < limit, "it waits for nothing"
    assert not waits_for_child(process.pid)
    assert not waits_for_child(os.getpid())
