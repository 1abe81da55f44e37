"""Ranks that are stopped: by an interrupt, a timeout, another's failure, the unloading of the extension."""

from __future__ import annotations

import re
import time

import pytest

METHODS = ("forkserver", "spawn", "fork")

# `ready` in a rank, then wait until stopped; what `finally` does is seen in an array of the notebook's.
WAITING = """%%parallel nprocs=2 start_method={method} {options}
seen[rank] = 1
try:
    ready(rank)
    time.sleep(600)
finally:
    seen[rank] += 1
"""


def seen(notebook):
    return notebook.value("seen.tolist()")


def fresh(notebook, *, holder: str = ""):
    notebook.run(f"seen = np.zeros(2)\nholder = {holder or None}").check()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("holder", ["", "[seen]"], ids=["moved", "mirrored"])
def test_an_interrupt_runs_finally_blocks_and_keeps_what_was_written(prepared, ready, method, holder):
    fresh(prepared, holder=holder)
    message = prepared.send(WAITING.format(method=method, options=""))
    ready(2)
    begun = time.monotonic()
    prepared.interrupt()
    reply = prepared.finish(message)
    assert time.monotonic() - begun < 2 + 3
    assert reply.error[0] == "RunInterrupted", reply.text
    assert re.search(r"(was|were) stopped at In \[\d+\] line \d", reply.text), reply.text
    assert "Traceback" not in reply.error[2]
    assert seen(prepared) == [2.0, 2.0]


@pytest.mark.parametrize("method", METHODS)
def test_a_second_interrupt_ends_at_once_who_ignores_the_first(prepared, ready, method):
    message = prepared.send(f"""%%parallel nprocs=2 start_method={method} grace=600
while True:
    try:
        ready(rank)
        while True:
            time.sleep(600)
    except KeyboardInterrupt:
        ready(rank + 2)
""")
    ready(2)
    prepared.interrupt()
    ready(4)
    begun = time.monotonic()
    prepared.interrupt()
    reply = prepared.finish(message)
    assert time.monotonic() - begun < 5
    assert reply.error[0] == "RunInterrupted", reply.text
    assert "stopped by SIGKILL" in reply.text


@pytest.mark.parametrize("method", METHODS)
def test_a_timeout_runs_finally_blocks_and_keeps_what_was_written(prepared, method):
    fresh(prepared, holder="[seen]")
    reply = prepared.run(WAITING.format(method=method, options="timeout=0.5"))
    assert reply.error[0] == "RunTimedOut", reply.text
    assert "timeout=0.5" in reply.text
    assert re.search(r"ranks 0-1 were stopped at In \[\d+\] line 5", reply.text), reply.text
    assert seen(prepared) == [2.0, 2.0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("by", ["an exception", "a kill"])
def test_a_failure_elsewhere_runs_finally_blocks_and_keeps_what_was_written(prepared, method, by):
    fresh(prepared, holder="[seen]")
    end = "1 / 0" if by == "an exception" else "os.kill(os.getpid(), signal.SIGKILL)"
    reply = prepared.run(f"""%%parallel nprocs=2 start_method={method}
seen[rank] = 5
nbshm.barrier()
if rank == 0:
    {end}
try:
    time.sleep(600)
finally:
    seen[rank] += 1
""")
    assert "ank 1 was stopped" in reply.text, reply.text
    assert reply.error[0] == ("RankRaised" if by == "an exception" else "RankDied")
    assert seen(prepared) == [5.0, 6.0]


@pytest.mark.parametrize("method", METHODS)
def test_a_rank_that_ignores_every_signal_is_killed_after_its_grace(prepared, method):
    reply = prepared.run(f"""%%parallel nprocs=2 start_method={method} grace=0.2
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
nbshm.barrier()
if rank == 1:
    now(); 1 / 0
time.sleep(600)
""")
    assert reply.error[0] == "RankRaised", reply.text
    assert "rank 0 was stopped" in reply.text
    assert 1.2 < prepared.value("seconds()") < 5


def test_a_rank_in_c_code_is_terminated_after_its_grace(prepared):
    reply = prepared.run("""%%parallel nprocs=2 grace=0.2
nbshm.barrier()
if rank == 1:
    now(); 1 / 0
ctypes.PyDLL(None).sleep(600)  # holds the GIL
""")
    assert reply.error[0] == "RankRaised", reply.text
    assert prepared.value("seconds()") < 4


@pytest.mark.parametrize("method", METHODS)
def test_a_rank_in_a_collective_is_ended_when_another_fails(prepared, method):
    reply = prepared.run(f"""%%parallel nprocs=2 start_method={method}
import torch.distributed as dist
dist.init_process_group("gloo")
if rank == 1:
    now(); raise ValueError("no gradients")
dist.all_reduce(torch.ones(3))
""")
    assert reply.error[0] == "RankRaised", reply.text
    assert "rank 1 failed" in reply.text
    assert "ValueError: no gradients" in reply.text
    assert prepared.value("seconds()") < 6
    again = prepared.run(f"""%%parallel nprocs=2 start_method={method}
import torch.distributed as dist
dist.init_process_group("gloo")
part = torch.ones(3)
dist.all_reduce(part)
part.tolist()
""")
    assert "[[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]" in again.check().text


NAMES = """%%parallel nprocs=2 start_method={method}
reader, writer = os.pipe()
if not (pid := os.fork()):
    open(f"/dev/shm/torch_{{os.getpid()}}_1_0", "w").close()
    os.write(writer, b"1")
    time.sleep(600)
os.read(reader, 1)
ready(rank)
nbshm.barrier()
{end}
"""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("end", ["os._exit(3)", ""])
def test_what_a_killed_child_of_a_worker_was_naming_goes_with_it(traces, ready, end, method):
    notebook = traces.kernel
    notebook.run(f"%%parallel nprocs=2 start_method={method}\nrank").check()
    before = traces.footprint()
    message = notebook.send(NAMES.format(method=method, end=end))
    ready(2)
    reply = notebook.finish(message)
    assert (reply.error is None) == (not end), reply.text
    traces.wait_for_no_more_than(before)


CHILDREN = """%%parallel nprocs=2 start_method={method}
import torch.utils.data as data
import subprocess
loader = data.DataLoader(torch.arange(100), num_workers=2)
batches = iter(loader)
next(batches)
pool = mp.get_context("fork").Pool(2)
pool.map(abs, [-1])
sleeper = subprocess.Popen(["sleep", "600"])
ready(rank)
nbshm.barrier()
{end}
time.sleep(600)
"""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "end", ["1 / 0", "os._exit(3)", "os.kill(os.getpid(), signal.SIGKILL)", "", "raise SystemExit"]
)
def test_children_of_a_worker_go_with_it(traces, ready, end, method):
    notebook = traces.kernel
    notebook.run(f"%%parallel nprocs=2 start_method={method}\nrank").check()
    before = traces.footprint()
    message = notebook.send(CHILDREN.format(method=method, end=end))
    ready(2)
    if not end:
        notebook.interrupt()
    reply = notebook.finish(message)
    assert (reply.error is None) == (end == "raise SystemExit"), reply.text
    traces.wait_for_no_more_than(before)


@pytest.mark.parametrize("when", ["after a run", "during a run"])
def test_unloading_ends_everything_and_loading_again_works(traces, ready, when):
    notebook = traces.kernel
    notebook.run("%unload_ext nbshm").check()
    bare = traces.footprint()
    notebook.run("%load_ext nbshm").check()
    if when == "during a run":
        message = notebook.send("""%%parallel nprocs=2
ready(rank)
time.sleep(600)
""")
        ready(2)
        notebook.interrupt()
        notebook.finish(message)
    else:
        assert "[0, 1]" in notebook.run("%%parallel nprocs=2\nrank").check().text
    notebook.run("%unload_ext nbshm").check()
    traces.wait_for_no_more_than(bare)
    notebook.run("%load_ext nbshm").check()
    assert "[0, 1]" in notebook.run("%%parallel nprocs=2\nrank").check().text


def test_an_interrupt_while_values_are_packed_is_heeded_when_they_are(prepared):
    prepared.run("""
import weakref
class Thing: pass
class Pressing:
    def __reduce__(self):
        thing = Thing()
        watch = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
        del thing
        return int, (7,)
pressing = Pressing()
""").check()
    reply = prepared.run("%%parallel nprocs=2\npressing\n")
    assert reply.error is not None, reply.text
    assert reply.error[2] == "KeyboardInterrupt: the run was interrupted."
    assert "ignored" not in reply.text
    assert "[0, 1]" in prepared.run("%%parallel nprocs=2\nrank").check().text
