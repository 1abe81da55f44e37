"""Ranks in processes of their own, and one in this: the lock, the barrier, progress."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from fractions import Fraction

import pytest
from rank_processes import TIMEOUT, results, started, tell

from nbshm import events
from nbshm.wire.board import Board
from nbshm.worker import ranks
from nbshm.worker.ranks import OnlyRank, Rank, being


def test_the_lock_is_held_by_one_rank_at_a_time(tmp_path):
    (tmp_path / "count").write_text("0")
    code = (
        f"path = {str(tmp_path / 'count')!r}\n"
        "for _ in range(200):\n"
        "  with lock():\n"
        "    with open(path) as file: count = int(file.read())\n"
        "    with open(path, 'w') as file: file.write(str(count + 1))\n"
    )
    results(code)
    assert (tmp_path / "count").read_text() == "600"


def test_the_lock_may_be_entered_again():
    code = "with lock():\n  with lock(): pass\n  import fcntl, sys\n  result = True\nwith lock(): pass"
    assert results(code) == [True] * 3


def test_the_lock_is_free_when_its_holder_has_died():
    code = (
        "import sys\n"
        "if rank == 0:\n"
        "  with lock():\n    print('held', flush=True)\n    sys.stdin.read()\n"
        "else:\n"
        "  sys.stdin.readline()\n"
        "  with lock(): result = 'mine'\n"
    )
    with started(code, 2) as (holder, waiter):
        assert holder.stdout.readline() == "held\n"
        tell(waiter)
        holder.send_signal(signal.SIGKILL)
        out, _ = waiter.communicate(timeout=TIMEOUT)
    assert out == "'mine'\n"


def test_the_lock_that_another_rank_has_is_not_taken_at_once_or_in_time():
    code = (
        "import sys\n"
        "if rank == 0:\n"
        "  lock().acquire()\n  print('held', flush=True)\n  sys.stdin.readline()\n"
        "  lock().release()\n  print('free', flush=True)\n  sys.stdin.read()\n"
        "else:\n"
        "  sys.stdin.readline()\n"
        "  print(lock().acquire(blocking=False), lock().acquire(timeout=0.01), flush=True)\n"
        "  sys.stdin.readline()\n"
        "  result = lock().acquire(blocking=False), lock().acquire(timeout=9)\n"
    )
    with started(code, 2) as (holder, waiter):
        assert holder.stdout.readline() == "held\n"
        tell(waiter)
        assert waiter.stdout.readline() == "False False\n"
        tell(holder)
        assert holder.stdout.readline() == "free\n"
        out, _ = waiter.communicate("go\n", timeout=TIMEOUT)
        holder.communicate(timeout=TIMEOUT)
    assert out == "(True, True)\n"


def test_the_lock_is_released_only_by_the_thread_that_has_it(a_rank):
    told: list[object] = []

    def release():
        try:
            told.append(a_rank.lock().release())
        except RuntimeError as error:
            told.append(str(error))

    assert a_rank.lock().acquire()
    for _ in range(2):  # before and after
        thread = threading.Thread(target=release)
        thread.start()
        thread.join()
        if len(told) == 1:
            a_rank.lock().release()
    release()
    assert told == ["lock: this thread does not have it, so it has nothing to release"] * 3


def test_claims_and_the_lock_can_be_used_by_threads_of_several_ranks_at_once():
    code = (
        "import threading\n"
        "def locked():\n"
        "  for _ in range(3000):\n"
        "    with lock(): sum(range(3000))\n"
        "thread = threading.Thread(target=locked)\n"
        "thread.start()\n"
        "result = sum(1 for _ in claim(iter(range(3000))))\n"
        "thread.join()"
    )
    assert sum(results(code)) == 3000


def test_the_lock_excludes_threads_of_one_rank(a_rank):
    inside, most = [], []

    def enter():
        for _ in range(100):
            with a_rank.lock():
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1


def test_a_barrier_says_that_it_waits_and_that_it_goes_on(a_rank):
    a_rank.barrier()
    assert a_rank.said == [events.Waiting(rank=1, at="barrier"), events.Resumed(rank=1)]


def test_a_forked_child_does_not_arrive_at_the_barrier():
    code = """
import os
reader, writer = os.pipe()
if not (pid := os.fork()):
    try: barrier()
    except RuntimeError as error: os.write(writer, str(error).encode())
    os._exit(0)
os.waitpid(pid, 0)
result = len(said), os.read(reader, 1000).decode()
"""
    ((number, told),) = results(code, nprocs=1)
    assert number == 0
    assert told == (
        "barrier: this process was forked by rank 0, and is no rank itself: nobody waits for it. Call "
        "barrier in the rank; end a forked process by os._exit() where it is not to run on."
    )


def test_a_broken_barrier_raises_with_the_reason(a_rank):
    a_rank._wait_release = lambda: "rank 0 has ended"
    with pytest.raises(threading.BrokenBarrierError, match="rank 0 has ended"):
        a_rank.barrier()


def test_progress_tells_the_beginning_and_the_end_and_not_everything_between(a_rank):
    begun = time.monotonic()
    with being(a_rank):
        assert list(ranks.progress(range(100_000), label="steps")) == list(range(100_000))
    most = 2 + (time.monotonic() - begun) / 0.1
    assert a_rank.said[0] == events.Progress(rank=1, label="steps", done=0, total=100_000)
    assert a_rank.said[-1] == events.Progress(rank=1, label="steps", done=100_000, total=100_000, ended=True)
    assert len(a_rank.said) <= most


def test_progress_stays_where_the_loop_was_left(a_rank):
    with being(a_rank):
        for item in ranks.progress("abcd"):
            if item == "c":
                break
    assert a_rank.said[-1].done == 2


def test_progress_of_unknown_length_has_no_total(a_rank):
    with being(a_rank):
        list(ranks.progress(iter("ab")))
    assert a_rank.said[-1] == events.Progress(rank=1, label="", done=2, total=None, ended=True)


def test_progress_refuses_a_total_that_is_no_number(a_rank):
    with being(a_rank), pytest.raises(TypeError, match=r"total='steps' is no number .* label=\.\.\."):
        ranks.progress(range(3), "steps")


@pytest.mark.parametrize(
    ("total", "told"), [(Fraction(5, 2), 2.5), (5.0, 5), (math.inf, None), (math.nan, None), (10**400, None)]
)
def test_what_is_told_of_a_loop_are_plain_numbers(a_rank, total, told):
    with being(a_rank):
        list(ranks.progress("ab", total))
    assert repr(a_rank.said[-1].total) == repr(told)


def test_outside_a_run_there_is_one_rank_of_one():
    assert list(ranks.claim({3})) == [3]
    assert list(ranks.progress([1, 2], label="x")) == [1, 2]
    ranks.barrier()
    with ranks.lock(), ranks.lock():
        assert ranks.lock().acquire(timeout=1)
        ranks.lock().release()


def test_the_device_of_a_rank_is_the_cpu_or_a_gpu_of_its_own(a_rank):
    torch = pytest.importorskip("torch")
    gpus = torch.cuda.device_count()
    with being(a_rank):
        assert ranks.device() == torch.device(f"cuda:{1 % gpus}" if gpus else "cpu")


def test_a_rank_is_one_only_while_it_is_entered(a_rank):
    with being(a_rank):
        assert ranks._here.rank is a_rank
    assert isinstance(ranks._here.rank, OnlyRank)


class SayingRank(Rank):
    def __init__(self, board: Board) -> None:
        self.said: list = []
        super().__init__(1, 2, say=self.said.append, wait_release=lambda: None, board=board)


@pytest.fixture
def a_rank() -> Iterator[SayingRank]:
    board = Board(os.memfd_create("board"), 2)
    yield SayingRank(board)
    board.close()
