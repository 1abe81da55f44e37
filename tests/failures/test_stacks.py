"""Dumps of stacks read into frames of cells, and told; pure, but for the dumps that Python itself writes."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import tempfile
import threading
import time
from multiprocessing.connection import Connection

from nbshm.failures.stacks import Dump, RankStack, Reader, Stacks, frames_at_death, frames_of, stack_of
from nbshm.failures.waits import Wait
from nbshm.jobs import Body, Origin
from nbshm.runs.notes import about_lingering, about_stillness

BODY = Body(
    source="load(queue)\n",
    cell="%%parallel nprocs=2\nload(queue)\n",
    origin=Origin(filename="/cells/cell-7.py", line=2, cell=7),
)
READER = Reader(cells={"/cells/cell-3.py": 3}, body=BODY)

QUEUE = """\
Thread 0x00000000000000ab [nbshm] (most recent call first):
  File "/lib/threading.py", line 312 in wait
  File "/lib/site-packages/nbshm/worker/whereabouts.py", line 90 in _follow

Current thread 0x00000000000000aa (most recent call first):
  File "/lib/python3.11/multiprocessing/connection.py", line 395 in _recv
  File "/lib/python3.11/multiprocessing/connection.py", line 216 in recv_bytes
  File "/lib/python3.11/multiprocessing/queues.py", line 103 in get
  File "/cells/cell-3.py", line 4 in load
  File "/cells/cell-7.py", line 2 in <module>
  File "/lib/site-packages/IPython/core/interactiveshell.py", line 3508 in run_code
  File "/lib/python3.11/multiprocessing/forkserver.py", line 274 in main
"""
FAULT = """\
Thread 0x00000000000000aa (most recent call first):
  File "/cells/cell-3.py", line 1 in load
Fatal Python error: Segmentation fault

Current thread 0x00000000000000aa (most recent call first):
  File "/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/cells/cell-7.py", line 2 in <module>
"""


def dump(text, **facts):
    return Dump(text=text, thread=0xAA, **facts)


def test_a_dump_is_read_from_the_persons_code_inwards():
    stack = stack_of(1, dump(QUEUE), READER)
    assert [frame.place for frame in stack.frames] == [
        "In [7] line 2",
        "In [3] line 4",
        "queues.py line 103",
        "connection.py line 216",
        "connection.py line 395",
    ]
    assert stack.frames[0].text == "load(queue)"
    assert stack.waits_for == Wait(what="something in a queue", waker="processes")


def test_of_several_dumps_the_last_counts():
    later = QUEUE.replace("line 4 in load", "line 5 in load")
    assert [frame.line for frame in frames_of(dump(QUEUE + later), READER)][-4] == 5


def test_a_dump_that_python_writes_is_read():
    with tempfile.TemporaryFile() as file:
        code = compile("write()", "/cells/cell-7.py", "exec")
        exec(code, {"write": lambda: faulthandler.dump_traceback(file=file, all_threads=True)})  # noqa: S102
        file.seek(0)
        text = file.read().decode()
    frames = frames_of(Dump(text=text, thread=threading.get_ident()), READER)
    assert "In [7] line 1" in [frame.place for frame in frames]


def test_ranks_at_the_same_place_are_told_together():
    stacks = [
        *(stack_of(rank, dump(QUEUE), READER) for rank in (0, 1, 2)),
        stack_of(3, dump(QUEUE, on_its_own=False), READER),
        stack_of(4, None, READER),
        stack_of(5, dump(""), READER),
    ]
    assert repr(Stacks(title="job (In [7])", ranks=tuple(stacks))).splitlines() == [
        "job (In [7]):",
        "ranks 0-2 wait for something in a queue:",
        "    In [7] line 2: load(queue)",
        "    In [3] line 4, in load",
        "rank 3 is in compiled code that lets no Python code run:",
        "    In [7] line 2: load(queue)",
        "    In [3] line 4, in load",
        "rank 4 does not answer.",
        "rank 5 is in no code of the notebook.",
    ]
    assert repr(Stacks(title="job (In [7])", ranks=())) == "job (In [7]): no rank runs."


def test_a_fault_is_told_by_its_own_dump():
    frames = frames_at_death(dump(FAULT), READER)
    assert [frame.place for frame in frames] == ["In [7] line 2", "__init__.py line 519"]
    assert frames_at_death(dump(QUEUE), READER) == ()
    assert frames_at_death(None, READER) == ()


def waiting(rank, waker):
    return RankStack(rank=rank, waits_for=Wait(what="the barrier", waker=waker))


def test_ranks_that_wait_for_each_other_are_a_deadlock():
    told = about_stillness([waiting(0, "ranks"), waiting(1, "processes")], may_be_fed=False)
    assert told == (
        "This looks like a deadlock: each rank waits, and none is left to wake another.\n"
        "rank 0 waits for the barrier.\n"
        "rank 1 waits for the barrier."
    )


def test_ranks_that_may_be_woken_are_none():
    assert about_stillness([waiting(0, "ranks"), RankStack(rank=1)], may_be_fed=False) is None
    assert about_stillness([waiting(0, "ranks"), waiting(1, "anyone")], may_be_fed=False) is None
    assert about_stillness([waiting(0, "ranks"), waiting(1, "processes")], may_be_fed=True) is None
    assert about_stillness([waiting(0, "ranks"), waiting(1, "ranks")], may_be_fed=True) is not None
    assert about_stillness([], may_be_fed=False) is None


def test_what_keeps_a_finished_rank_is_named():
    ended = """\
Thread 0x00000000000000ac (most recent call first):
  File "/cells/cell-3.py", line 9 in watch
  File "/lib/python3.11/threading.py", line 982 in run

Thread 0x00000000000000aa (most recent call first):
  File "/lib/python3.11/threading.py", line 1583 in _shutdown
"""
    assert about_lingering(dump(ended), READER) == (
        "it has finished, and waits for a thread that its code started and that still runs: In [3] line 9."
    )
    assert about_lingering(dump(QUEUE), READER) is None
    assert about_lingering(None, READER) is None


def test_a_queue_that_nobody_reads_is_what_keeps_a_finished_rank():
    queue, text = multiprocessing.get_context("spawn").Queue(), ""
    reader = Connection(os.dup(queue._reader.fileno()))  # the queue closes its own when all is written
    queue.put(bytes(1 << 20))
    queue.close()
    leaving = threading.Thread(target=queue.join_thread)
    leaving.start()
    limit = time.monotonic() + 10
    with tempfile.TemporaryFile() as file:
        while "_finalize_join" not in text:
            assert time.monotonic() < limit, text
            faulthandler.dump_traceback(file=file, all_threads=True)
            file.seek(0)
            text = file.read().decode()
    told = about_lingering(Dump(text=text, thread=leaving.ident), READER)
    reader.recv_bytes()
    reader.close()
    leaving.join()
    assert told == (
        "it has finished, and waits for someone to take what was put on a queue. "
        "Take it in another rank, or in the notebook while the ranks run (background=job)."
    )


def test_a_line_that_calls_itself_is_told_once() -> None:
    frames = (
        '  File "/cells/cell-3.py", line 4 in load\n' * 30 + '  File "/cells/cell-7.py", line 2 in <module>\n'
    )
    stack = stack_of(0, dump(f"Thread 0x00000000000000aa (most recent call first):\n{frames}"), READER)
    assert repr(Stacks(title="job", ranks=(stack,))).splitlines()[2:] == [
        "    In [7] line 2: load(queue)",
        "    In [3] line 4, in load",
        "    ... and the same 29 times more",
    ]
