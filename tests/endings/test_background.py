"""Runs in the background: the cell ends at once, the run goes on; its end is told where it was started."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

# Ranks write a 1 and wait until the notebook writes `go`; what they print and give back is theirs.
WAITING = """%%parallel nprocs=2 background={name} timeout=60 {options}
seen[rank] = 1
print("rank", rank, "is here")
ready(rank)
while not go[0]:
    time.sleep(0.005)
seen[rank] = 2
{end}
"""


def start(notebook, ready, *, name="job", options="", end="rank * 10", holder="None"):
    """Start a run, and wait until both ranks have written their first value."""
    notebook.run(f"seen, go = np.zeros(2), np.zeros(1)\nholder = {holder}").check()
    reply = notebook.run(WAITING.format(name=name, options=options, end=end)).check()
    ready(2)
    return reply


def test_what_it_writes_is_watched_and_what_it_gives_is_asked_for(prepared, ready):
    start(prepared, ready, options="out=number", end="number = rank\nrank * 10")
    assert prepared.value("seen.tolist()") == [1.0, 1.0]
    assert prepared.value("(job.status, job.wait(0), list(job.results))") == ("running", False, [None, None])
    prepared.run("while not (job.output(0) and job.output(1)): time.sleep(0.005)").check()
    assert prepared.value("[job.output(0), job.output(1)]") == ["rank 0 is here\n", "rank 1 is here\n"]
    assert "<BackgroundRun 'job' (In [" in prepared.run("job").text
    assert "running for " in prepared.run("job").text
    assert prepared.value("[go.fill(1), job.wait(), job.status, job.results, number]")[1:] == [
        True,
        "finished",
        [0, 10],
        [0, 1],
    ]
    assert prepared.value("(seen.tolist(), list(__import__('nbshm').last.results))") == ([2.0, 2.0], [0, 10])
    assert "): finished>" in prepared.run("job").text
    assert "there is no rank 2" in prepared.run("job.output(2)").text
    assert "wait(-1): give seconds from 0 on" in prepared.run("job.wait(-1)").text


def test_a_run_that_has_not_ended_keeps_its_name(prepared, ready):
    start(prepared, ready, name="kept")
    told = prepared.run("%%parallel nprocs=2 background=kept\nrank").stderr
    assert "background=kept: the run of this name has not ended. Stop it (kept.stop())" in told
    assert prepared.value("[kept.status, go.fill(1), kept.wait(), kept.results]")[2:] == [True, [0, 10]]
    prepared.run("%%parallel nprocs=2 background=kept\nrank").check()
    assert prepared.value("[kept.wait(), kept.results]") == [True, [0, 1]]


def test_other_cells_run_meanwhile_and_several_runs_at_once(prepared, ready):
    start(prepared, ready, name="first")
    prepared.run(
        "%%parallel nprocs=2 background=second\nwhile not go[0]: time.sleep(0.005)\nrank + 5"
    ).check()
    assert "[0, 1]" in prepared.run("%%parallel nprocs=2\nseen[rank] += 4\nrank").check().text
    assert prepared.value("seen.tolist()") == [5.0, 5.0]
    assert prepared.value("(first.status, second.status)") == ("running", "running")
    prepared.run("go[0] = 1")
    assert prepared.value("[first.wait(), second.wait(), first.results, second.results]") == [
        True,
        True,
        [0, 10],
        [5, 6],
    ]


def test_a_failure_is_shown_and_raised_each_time_somebody_waits(prepared, ready):
    start(prepared, ready, end="10 // (1 - rank)")
    prepared.run("go[0] = 1")
    for _ in range(2):
        reply = prepared.run("job.wait()")
        assert reply.error[0] == "RankRaised", reply.text
        assert "rank 1 failed at In [" in reply.text
        assert "ZeroDivisionError: " in reply.text
    assert prepared.value("(job.status, job.results)") == ("failed", [10, None])
    assert "nobody has asked" not in prepared.run("del job; import gc; gc.collect()").text


def test_a_failure_that_nobody_asks_about_is_warned_of_when_its_job_goes(prepared):
    prepared.run("%%parallel nprocs=2 background=job\nif rank == 1: 1 / 0\nnbshm.barrier()").check()
    prepared.run("is_over = job._standing.over.wait(60)").check()
    reply = prepared.run("job = None")
    assert "the background run 'job' failed, and nobody has asked how it ended: rank 1 failed" in reply.text


def test_stop_runs_finally_blocks_and_wait_tells_it(prepared, ready):
    prepared.run("seen = np.zeros(2)").check()
    prepared.run("""%%parallel nprocs=2 background=job
try:
    ready(rank)
    time.sleep(600)
finally:
    seen[rank] = 9
""").check()
    ready(2)
    assert prepared.value("[job.stop(), job.status, seen.tolist(), job.stop()]") == [
        None,
        "stopped",
        [9.0, 9.0],
        None,
    ]
    reply = prepared.run("job.wait()")
    assert reply.error[0] == "RunInterrupted"
    assert re.search(r"the run was stopped\.\nranks? 0(-1 were| was) stopped at In \[", reply.text), (
        reply.text
    )


def test_an_interrupt_ends_the_wait_and_not_the_run(prepared, ready):
    start(prepared, ready)
    message = prepared.send("print('waiting')\njob.wait()")
    prepared.finish(message, until="waiting")
    prepared.interrupt()
    assert prepared.finish(message).error[2] == (
        "KeyboardInterrupt: the wait was interrupted. The run goes on; stop() ends it."
    )
    assert prepared.value("[job.status, go.fill(1), job.wait(), job.status]") == [
        "running",
        None,
        True,
        "finished",
    ]


def test_a_mirrored_array_is_told_and_comes_back_at_the_end(prepared, ready):
    start(prepared, ready, holder="[seen]")
    assert prepared.value("seen.tolist()") == [0.0, 0.0]
    assert "mirrored: it is held by the list 'holder' too" in prepared.run("%shm_status").text
    refused = prepared.run("%%parallel nprocs=2\nseen[rank] = 5")
    assert refused.error[0] == "CannotSend", refused.text
    assert "cannot share 'seen': it is copied back to the notebook when job (In [" in refused.text
    told = prepared.run("go[0] = 1; job.wait()").text
    assert "nbshm: seen is mirrored (%shm_status says why): what the ranks" in told
    assert prepared.value("seen.tolist()") == [2.0, 2.0]
    prepared.run("%%parallel nprocs=2\nseen[rank] = 5").check()


def test_a_tensor_that_it_mirrors_is_known_when_the_notebook_has_resized_it(prepared, ready):
    prepared.run("seen, go = torch.zeros(2), np.zeros(1)\nholder = [[seen[:1]]]").check()
    prepared.run(WAITING.format(name="job", options="", end="")).check()
    ready(2)
    prepared.run("seen.resize_(1 << 20)[2:] = 7").check()
    assert "mirrored" in prepared.run("%shm_status").text
    refused = prepared.run("%%parallel nprocs=2\nseen[rank] = 5")
    assert refused.error[0] == "CannotSend", refused.text
    assert prepared.value("[go.fill(1), job.wait(), seen[:3].tolist()]") == [None, True, [2.0, 2.0, 7.0]]


@pytest.mark.parametrize(
    ("line", "error", "words"),
    [
        ("timeout=0.2\nready(rank)\ntime.sleep(600)", "RunTimedOut", "timeout=0.2"),
        ("out=value\nif rank > 5: value = 1", "NothingBound", "no rank has bound 'value'"),
    ],
)
def test_other_endings_are_raised_by_wait_too(prepared, line, error, words):
    prepared.run(f"%%parallel nprocs=2 background=job {line}").check()
    reply = prepared.run("job.wait()")
    assert reply.error[0] == error, reply.text
    assert words in reply.text


def test_what_cannot_travel_is_refused_in_the_cell_and_binds_nothing(prepared):
    prepared.run("log = open('log.txt', 'w'); job = 'as it was'").check()
    assert prepared.run("%%parallel background=job\nlog.write('x')").error[0] == "CannotSend"
    assert prepared.value("job") == "as it was"
    assert "background is the name of a variable" in prepared.run("%%parallel background=a,b\n1").text


def test_its_outputs_belong_to_the_cell_that_started_it(prepared, ready):
    """A front end asks with an input channel and the cell's id; it shows what belongs to which request."""
    prepared.run("seen, go = np.zeros(2), np.zeros(1)").check()
    client = prepared.client
    content = {
        "code": WAITING.format(name="job", options="", end="1 / 0"),
        "silent": False,
        "store_history": True,
        "user_expressions": {},
        "allow_stdin": True,
        "stop_on_error": True,
    }
    message = client.session.msg("execute_request", content, metadata={"cellId": "one"})
    client.shell_channel.send(message)
    ready(2)
    ended = prepared.send("go[0] = 1; job._standing.over.wait(60)")
    owners = owners_of_outputs(client, until="ZeroDivisionError", seconds=60)
    assert owners <= {message["header"]["msg_id"]}
    prepared.finish(ended)
    prepared.run("job.status").check()


def owners_of_outputs(client, *, until, seconds):
    """Return the requests to which outputs belong, up to the one that contains `until`."""
    owners = set()
    while True:
        message = client.get_iopub_msg(timeout=seconds)
        if message["msg_type"] in {"stream", "display_data", "update_display_data"}:
            owners.add(message["parent_header"]["msg_id"])
        if message["msg_type"] == "display_data" and until in str(message["content"]["data"]):
            return owners


def test_nothing_is_left_of_it_and_unloading_ends_it(traces, ready):
    notebook = traces.kernel
    notebook.run("job = first = second = seen = go = None\n%unload_ext nbshm").check()
    bare = traces.footprint()
    # ipykernel keeps an event of each thread that has shown something, ten seconds longer than the thread.
    bare = replace(bare, fds=bare.fds + Counter({"anon_inode:[eventfd]": 1}))
    notebook.run("%load_ext nbshm").check()
    start(notebook, ready)
    notebook.run("seen = go = None\n%unload_ext nbshm").check()
    assert notebook.value("job.status") == "stopped"
    traces.wait_for_no_more_than(bare)
    notebook.run("%load_ext nbshm").check()


def test_the_end_of_the_kernel_ends_it(prepared, ready, traces):
    start(prepared, ready)
    prepared.manager.shutdown_kernel(now=False)
    traces.wait_for_nothing(seconds=10)
