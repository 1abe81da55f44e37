"""What a process uses, as the system counts it."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import time

import pytest

from nbshm.views.gauges import Gauge, inherited_memory

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="Linux tells, others do not")  # noqa: PTH110
SIZE = 64 << 20


def test_own_and_shared_memory_are_told_apart() -> None:
    gauge = Gauge(os.getpid(), time.monotonic())
    before = gauge.read(time.monotonic())
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # no memory that an earlier test has given up
    with mmap.mmap(-1, SIZE, flags=private) as own, mmap.mmap(-1, SIZE) as shared:  # as between processes
        own.write(b"1" * SIZE)
        shared.write(b"1" * SIZE)
        after = gauge.read(time.monotonic())
    assert before is not None
    assert after is not None
    assert SIZE * 0.9 < after.own - before.own < SIZE * 1.5
    assert SIZE * 0.9 < after.shared - before.shared < SIZE * 1.5


def test_the_share_of_a_core_is_that_since_the_last_reading() -> None:
    now = time.monotonic()
    gauge = Gauge(os.getpid(), now)
    gauge.read(now)
    used = time.process_time()
    while time.process_time() - used < 0.2:
        pass
    usage = gauge.read(now + 0.4)  # as if this much time had passed
    assert usage is not None
    assert 0.4 < usage.cpu < 0.8


def test_a_process_that_is_gone_has_no_usage() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    gauge = Gauge(child.pid, 0.0)
    child.communicate(b"\n")
    assert gauge.read(1.0) is None
    assert inherited_memory(child.pid) is None


def test_what_a_forked_process_has_of_its_parent_is_not_its_own() -> None:
    kept = bytearray(os.urandom(1) * SIZE)
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        inherited = inherited_memory(child)
        assert inherited is not None
        everything, usage = (Gauge(child, 0.0, inherited=each).read(1.0) for each in (0, inherited))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert inherited > len(kept) * 0.4  # half of what two have is each one's
    assert everything is not None
    assert usage is not None
    assert everything.own - usage.own == inherited
