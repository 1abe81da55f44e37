"""Thousands of cells in one kernel, a third failing, killed or interrupted at random moments: nothing grows.

`NBSHM_SOAK_CELLS` says how many (2000), `NBSHM_SOAK_SEED` which; the seed is told when something fails.
"""

from __future__ import annotations

import collections
import contextlib
import os
import random
import signal
import time

import pytest
from kernels import Reply
from leaks import AS_MANY_STAND_BY, NOBODY_STANDS_BY, added, traced_kernel

CELLS = int(os.environ.get("NBSHM_SOAK_CELLS", "2000"))
SEED = int(os.environ.get("NBSHM_SOAK_SEED", str(time.time_ns() % 100_000)))
LOOK_EVERY = 50
MOST_DROPPED = 0.005  # of all cells: one in a hundred interrupts comes before the code runs
MOST_GROWTH = 100 << 20  # bytes; a leak of one page a cell would be 8 MB, of one shared tensor much more

PREAMBLE = """
import os, random, signal, sys, time
import numpy as np
import torch
grid = np.zeros((100, 100))
held = [grid]
weights = torch.zeros(1000)
def work(seconds):
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        weights.add_(1)
        grid[rank] += 1
        print("at work", end="\\\\r")
"""

WAIT_FOR_STANDBY = """
import nbshm.extension
standby, limit = nbshm.extension.current_session().launcher._standby, time.monotonic() + 60
while len(standby) < 2:
    assert time.monotonic() < limit
    time.sleep(0.01)
"""

FAILURES = [
    "if rank == nprocs - 1: 1 / 0",
    "if rank == 0: os._exit(3)",
    "if rank == 0: os.kill(os.getpid(), signal.SIGKILL)",
    "if rank == nprocs - 1: sys.exit('enough')",
    "nbshm.barrier(); raise KeyError(rank)",
]


def cell(chance: random.Random, *, body: str) -> str:
    method = chance.choices(["forkserver", "fork", "spawn"], weights=[16, 3, 1])[0]
    extra = chance.choice(
        ["", "nbshm.barrier()", "print(list(nbshm.claim(range(20))))", "made = torch.ones(5)"]
    )
    return f"%%parallel nprocs={chance.randint(1, 4)} start_method={method}\n{extra}\n{body}\nrank\n"


@pytest.mark.soak
@pytest.mark.timeout(max(600, 5 * CELLS))
def test_thousands_of_cells_leave_nothing(tmp_path):
    chance = random.Random(SEED)  # noqa: S311  # nothing secret
    print(f"NBSHM_SOAK_SEED={SEED}")
    with traced_kernel(tmp_path) as traces:
        notebook = traces.kernel
        notebook.run(PREAMBLE, timeout=120).check()
        for method in ("forkserver", "fork", "spawn"):  # so that everything is there that stays
            for _ in range(10):
                notebook.run(f"%%parallel nprocs=2 start_method={method}\nwork(0)\nrank").check()
            notebook.run(f"%%parallel nprocs=2 start_method={method}\nwork(1)").check()  # shows the live view
            notebook.run(f"%%parallel nprocs=2 start_method={method}\n1 / 0")
        notebook.run(AS_MANY_STAND_BY).check()
        notebook.run("%%parallel nprocs=2\ntorch.ones(1)").check()
        notebook.run(WAIT_FOR_STANDBY, timeout=120).check()  # from the server that has imported more
        notebook.run(NOBODY_STANDS_BY).check()
        forget_outputs(notebook)
        before, began = traces.footprint(), time.monotonic()
        notebook.run(AS_MANY_STAND_BY).check()
        endings: collections.Counter[str] = collections.Counter()
        for number in range(1, CELLS + 1):
            endings[one(chance, traces, before)] += 1
            assert endings["dropped"] <= MOST_DROPPED * number + 1
            if number % LOOK_EVERY == 0 or number == CELLS:
                forget_outputs(notebook)
                notebook.run(NOBODY_STANDS_BY).check()
                now = traces.wait_for_no_more_than(before, seconds=10)
                assert now.rss - before.rss < MOST_GROWTH, f"{(now.rss - before.rss) >> 20} MB more"
                notebook.run(AS_MANY_STAND_BY).check()
                tell(number, began, before, now, endings)


def forget_outputs(notebook) -> None:
    """Let go of the output of the last run and of the last failed one, which lies in files without a name."""
    notebook.run("%reset -f out")
    notebook.run("%%parallel nprocs=1\npass").check()
    notebook.run("1 / 0")
    notebook.run("import gc; gc.collect()").check()


def one(chance, traces, before) -> str:
    """Run a cell that succeeds, fails, is killed or is interrupted; check that it says what it should."""
    notebook = traces.kernel
    kind = chance.choices(["good", "failing", "killed", "interrupted"], weights=[6, 1, 1, 1])[0]
    if kind == "good":
        assert notebook.run(cell(chance, body="work(0.01)")).error is None
    elif kind == "failing":
        assert notebook.run(cell(chance, body=chance.choice(FAILURES))).error[0] in {"RankRaised", "RankDied"}
    else:
        message = notebook.send(cell(chance, body="work(60)"))
        time.sleep(chance.uniform(0, 0.6))  # the random moment
        stop = kill_one if kind == "killed" else interrupt
        reply = until_ended(notebook, message, lambda: stop(chance, traces, before))
        if kind == "interrupted" and not (reply.error or reply.text):
            return "dropped"  # by ipykernel, as any cell that is interrupted before its code runs
        assert reply.error, f"{kind}: {reply.text}"
        assert reply.error[0] in {"RankDied", "RunInterrupted", "KeyboardInterrupt"}, reply.text
    return kind


def until_ended(notebook, message, stop):
    """Stop the cell again and again until it has ended: at first there are no workers to be killed."""
    reply = Reply()
    for _ in range(100):
        stop()
        with contextlib.suppress(AssertionError):
            return notebook.finish(message, timeout=4, reply=reply)
    raise AssertionError("the cell does not end")


def kill_one(chance, traces, before) -> None:
    workers = sorted(traces.footprint().processes - before.processes)
    if workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(workers), signal.SIGKILL)


def interrupt(_chance, traces, _before) -> None:
    traces.kernel.interrupt()


def tell(number, began, before, now, endings) -> None:
    seconds = time.monotonic() - began
    print(
        f"{number} cells in {seconds:.0f} s {dict(endings)}: {added(before, now) or 'nothing more'}, "
        f"{now.fds.total()} descriptors, {now.threads} threads, {len(now.processes)} processes, "
        f"{now.rss >> 20} MB (began with {before.rss >> 20})",
        flush=True,
    )
