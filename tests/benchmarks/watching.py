"""What it costs to watch: the kernel's processor time with the live view, a rank that prints all the time.

The kernel's time is compared between a front end that shows the view and one that executes alone; that of a
rank that prints with the same rank printing to nowhere.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import psutil
from benchmarks.samples import Comparison
from kernels import Kernel, kernel

_QUIET = """%%parallel nprocs={nprocs}
import time
end = time.monotonic() + {seconds}
for step in nbshm.progress(range(10**9)):
    if step % 10 == 0:
        print("step", step)
    time.sleep(0.02)
    if time.monotonic() > end:
        break"""
_FLOOD = """%%parallel nprocs=1
import os, time
file = open({path!r}, "w") if {path!r} else None
begun = time.perf_counter()
for number in range({lines}):
    until = time.perf_counter() + 1e-5
    while time.perf_counter() < until:
        pass
    print("line", number, file=file)
time.perf_counter() - begun"""
_FIRST_ROW = "%%parallel nprocs=4\nimport time; time.sleep(1)"


def view(
    directory: Path, repetitions: int, *, seconds: float = 8.0, crowds: Sequence[int] = (4, 64)
) -> list[Comparison]:
    """Compare the kernel's processor time for runs of that many seconds; 1 % of a core is 10 ms a second."""
    with kernel(directory) as running:
        running.run(_QUIET.format(nprocs=4, seconds=0.5)).check()
        watch(running, _QUIET.format(nprocs=4, seconds=0.5))
        return [_view(running, nprocs, repetitions, seconds) for nprocs in crowds]


def flood(directory: Path, repetitions: int, *, lines: int = 100_000) -> list[Comparison]:
    """Compare a rank that prints a line per 10 microseconds of work with one that prints to /dev/null."""
    with kernel(directory) as running:
        shown, nowhere = (_FLOOD.format(path=path, lines=lines) for path in ("", "/dev/null"))
        running.run(nowhere).check()
        times = [(_printing(running, shown), _printing(running, nowhere)) for _ in range(repetitions)]
    ours, theirs = zip(*times, strict=True)
    return [Comparison(workload=f"{lines} printed lines", peer="/dev/null", ours=ours, theirs=theirs)]


def first_row(directory: Path, repetitions: int) -> list[Comparison]:
    """Compare the time until the view is there with the half second that it may take."""
    with kernel(directory) as running:
        running.run("%%parallel nprocs=4\nNone").check()
        times = tuple(watch(running, _FIRST_ROW) for _ in range(repetitions))
    limit = (0.5,) * repetitions
    return [Comparison(workload="first row", peer="half a second", ours=times, theirs=limit)]


def _view(running: Kernel, nprocs: int, repetitions: int, seconds: float) -> Comparison:
    cell = _QUIET.format(nprocs=nprocs, seconds=seconds)
    times = [
        (
            _processor_time(running, lambda: watch(running, cell)),
            _processor_time(running, lambda: running.run(cell)),
        )
        for _ in range(repetitions)
    ]
    ours, theirs = zip(*times, strict=True)
    workload = f"CPU of {seconds:g} s, {nprocs} ranks, view"
    return Comparison(workload=workload, peer="no view", ours=tuple(ours), theirs=tuple(theirs))


def watch(running: Kernel, cell: str) -> float:
    """Run a cell as a front end with widgets does; return how long it took until a widget was shown."""

    client = running.client
    content = {
        "code": cell,
        "silent": False,
        "store_history": True,
        "user_expressions": {},
        "allow_stdin": True,
    }
    message = client.session.msg("execute_request", content, metadata={"cellId": "benchmark"})
    begun, shown = time.perf_counter(), None
    client.shell_channel.send(message)
    while True:
        reply = client.get_iopub_msg(timeout=60)
        if reply["parent_header"].get("msg_id") != message["header"]["msg_id"]:
            continue
        if reply["msg_type"] == "display_data" and shown is None:
            shown = time.perf_counter() - begun
        if reply["msg_type"] == "error":
            raise AssertionError(reply["content"]["evalue"])
        if reply["msg_type"] == "status" and reply["content"]["execution_state"] == "idle":
            assert shown is not None
            return shown


def _printing(running: Kernel, cell: str) -> float:
    result = running.run(cell).check().result
    assert result is not None
    return float(result["text/plain"].strip("[]"))


def _processor_time(running: Kernel, run) -> float:
    process = psutil.Process(running.pid)
    before = process.cpu_times()
    run()
    after = process.cpu_times()
    return after.user + after.system - before.user - before.system
