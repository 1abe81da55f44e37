"""What the workers of these tests do with their job: each function is a `nbshm.worker.life.Work`.

The job is the name of one of the behaviours below, and its argument.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nbshm.events import Display, Exited, Failed, Progress, Result, Resumed, Started, Waiting
from nbshm.failures.tracebacks import report_exception
from nbshm.jobs import Parcel
from nbshm.wire.markers import mark
from nbshm.wire.messages import Release
from nbshm.worker.life import Seat

FOREVER = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a behaviour is called with."""

    argument: Any
    fds: list[int]
    seat: Seat


def run(job, fds, seat: Seat) -> int:
    name, argument = pickle.loads(job)
    if name == "fail_early":
        raise ImportError(argument)
    seat.say(Started(rank=seat.rank))
    try:
        value = BEHAVIOURS[name](Task(argument=argument, fds=fds, seat=seat))
    except Exception as error:  # noqa: BLE001  # told, as a body's failure is
        seat.say(Failed(rank=seat.rank, report=report_exception(error)))
        return 1
    seat.say(Result(rank=seat.rank, parcel=Parcel(pickled=pickle.dumps(value))))
    return 0


def echo(task):
    return task.argument


def describe(task):
    import multiprocessing

    return {
        "pid": os.getpid(),
        "group": os.getpgrp(),
        "mask": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
        "daemon": multiprocessing.current_process().daemon,
        "start_method": multiprocessing.get_start_method(allow_none=True),
        "main": getattr(sys.modules["__main__"], "__file__", None),
        "stdin": sys.stdin.read(),
        "rank": (task.seat.rank, task.seat.nprocs),
        "modules": sorted(sys.modules),
        "hash": hash("a string"),
    }


def print_and(task):
    print("first", end="")
    print("unfinished", end="", file=sys.stderr)
    BEHAVIOURS[task.argument](replace(task, argument=""))


def kill_self(task):
    if task.argument in ("", task.seat.rank):
        os.kill(os.getpid(), signal.SIGKILL)
    wait_forever(task)


def exit_now(_task):
    os._exit(7)


def exit_255(_task):
    os._exit(255)


def until_its_server_is_gone(task):
    server = os.getppid()
    print("ready")
    while os.getppid() == server:
        time.sleep(0.001)
    if task.argument == "exits":
        os._exit(0)


def exit_zero(_task):
    os._exit(0)


def segfault(_task):
    ctypes.string_at(0)


def wait_forever(_task):
    print("ready")
    time.sleep(FOREVER)


def ignore_interrupt(_task):
    while True:
        try:
            print("ready")
            time.sleep(FOREVER)
        except KeyboardInterrupt:  # noqa: PERF203  # what this is about
            print("swallowed")


def ignore_everything(task):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ignore_interrupt(task)


def stop_self(_task):
    os.kill(os.getpid(), signal.SIGSTOP)


def clean_up(task):
    try:
        print("ready")
        time.sleep(FOREVER)
    finally:
        Path(task.argument, f"{task.seat.rank}").write_text("cleaned")


def fail_together(task):
    barrier(task)
    raise ValueError("bad shard")


def fail_one(task):
    if task.seat.rank == task.argument:
        raise ValueError("bad shard")
    time.sleep(FOREVER)


def raise_interrupt(task):
    error = KeyboardInterrupt("from the code")
    task.seat.say(Failed(rank=task.seat.rank, report=report_exception(error)))
    raise SystemExit(1)


def interrupt_self(_task):
    os.kill(os.getpid(), signal.SIGINT)


def quit_with(task):
    task.seat.say(Exited(rank=task.seat.rank, code=task.argument))
    raise SystemExit(task.argument)


def flood(task):
    line = "x" * 79 + "\n"
    for _ in range(task.argument // 80):
        sys.stdout.write(line)
    return task.argument


def flood_forever(_task):
    while True:
        os.write(1, b"y" * 8000)


def write_bytes(task):
    for part in task.argument:
        os.write(1, part)
        task.seat.say(Progress(rank=task.seat.rank, label="part", done=1, total=None))


def print_in_c(_task):
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    ctypes.CDLL(None).puts(b"from C")
    ctypes.CDLL(None).fflush(None)


def display_between(task):
    for number in range(5):
        print(f"before {number}")
        sys.stdout.buffer.write(mark(task.argument, number))
        task.seat.say(Display(rank=task.seat.rank, data={"text/plain": f"display {number}"}))
    print("after")


def big_result(task):
    return b"r" * task.argument


def count_descriptors(task):
    contents = [os.pread(fd, 100, 0) for fd in (task.fds[0], task.fds[-1])]
    return contents, len(task.fds), len({os.fstat(fd).st_ino for fd in task.fds})


def send_descriptors(task):
    fds = []
    for number in range(task.argument):
        fd = os.memfd_create("result")
        os.write(fd, str(number).encode())
        fds.append(fd)
    task.seat.say(Result(rank=task.seat.rank, parcel=Parcel(pickled=pickle.dumps(None))), fds)


def leave_children(_task):
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(3600)"]
    )
    return child.pid


def leave_thread(_task):
    threading.Thread(target=time.sleep, args=(FOREVER,)).start()


def partial_frame(task):
    task.seat.channel._connection.sendall(b"\x40\0\0\0\0\0\0\0\0\0\0\0half")
    os.kill(os.getpid(), signal.SIGKILL)


def unreadable_event(task):
    task.seat.channel.send(b"no pickle")


def barrier(task):
    rounds = task.argument[task.seat.rank]
    for _ in range(rounds):
        task.seat.say(Waiting(rank=task.seat.rank, at="barrier"))
        release = task.seat.wait_for(Release)
        if release.broken:
            raise RuntimeError(release.broken)
        task.seat.say(Resumed(rank=task.seat.rank))
    return rounds


def hold_gil(_task):
    print("ready")
    ctypes.PyDLL(None).sleep(FOREVER)


def run_cell(task):
    code = compile(task.argument, "the cell", "exec")
    task.seat.whereabouts.follow({"the cell": 7}, lambda _: None)
    exec(code, {})  # noqa: S102  # a stand-in for a cell


def with_child(_task):
    subprocess.run(
        [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(3600)"], check=True
    )


BEHAVIOURS = {name: value for name, value in vars().items() if callable(value)}
