"""Where ranks are, asked while they are there: in every kind of wait, stuck, stopped, or without an end."""

from __future__ import annotations

import re
import time

import pytest

SETUP = """
spawning = mp.get_context("spawn")
queue, full, event, meeting = spawning.Queue(), spawning.Queue(1), spawning.Event(), spawning.Barrier(99)
held = spawning.Lock()
held.acquire()
near, far = spawning.Pipe()
def take(queue):
    return queue.get()
def hold():
    with held:
        pass
def wait_for_child():
    import subprocess
    subprocess.run(["sleep", "600"])
"""
PLACES = {
    "nbshm.barrier()": "waits for the barrier",
    "take(queue)": "waits for something in a queue",
    "event.wait()": "waits for a lock, an event or a barrier of multiprocessing",
    "meeting.wait()": "waits for a lock, an event or a barrier of multiprocessing",
    "hold()": "waits for a lock, an event or a barrier of multiprocessing",
    "near.recv()": "waits for a connection to another process",
    "threading.Event().wait()": "waits for another thread",
    "wait_for_child()": "waits for another process to end",
    "os.system('sleep 600')": "waits for another process to end",
    "ctypes.PyDLL(None).sleep(600)": "is in compiled code that lets no Python code run",
    "time.sleep(600)": "is at",
    "os.kill(os.getpid(), signal.SIGSTOP)": "does not answer.",
}


def missed(told: str) -> list[str]:
    """Return the code whose rank is not told to be where it is."""
    found = []
    for rank, (code, words) in enumerate(PLACES.items()):
        pattern = rf"rank {rank} {re.escape(words)}"
        if words != "does not answer.":
            pattern += rf":\n    In \[\d+\] line {2 * rank + 4}: {re.escape(code)}\n"
        if not re.search(pattern, told):
            found.append(code)
    return found


def test_each_rank_is_found_where_it_is_and_is_not_disturbed(prepared, ready):
    prepared.run(SETUP).check()
    body = "".join(f"if rank == {rank}:\n    {code}\n" for rank, code in enumerate(PLACES))
    prepared.run(f"%%parallel nprocs={len(PLACES)} background=job\nready(rank)\n{body}").check()
    ready(len(PLACES))
    limit = time.monotonic() + 20
    while missed(prepared.run("%parallel_stacks job").check().stdout):  # some have still to get there
        assert time.monotonic() < limit, prepared.run("%parallel_stacks job").stdout
    for _ in range(2):
        told = prepared.run("%parallel_stacks job").check().stdout
        assert missed(told) == [], told
        assert "In [" in told.split("take(queue)\n")[1].splitlines()[0]  # the line of the function, too
    assert prepared.value("[rank.waits_for and rank.waits_for.waker for rank in job.stacks().ranks][:2]") == [
        "ranks",
        "processes",
    ]
    prepared.run("job.stop()").check()
    assert prepared.run("job.stacks()").result["text/plain"].endswith(": no rank runs.")


def test_without_runs_and_for_wrong_names_the_magic_says_so(prepared):
    assert prepared.run("%parallel_stacks").stdout == "no run is alive.\n"
    assert "no run called 'jab' is alive" in prepared.run("%parallel_stacks jab").stderr


def test_a_timeout_tells_where_the_ranks_were(prepared):
    prepared.run(SETUP).check()
    reply = prepared.run("%%parallel nprocs=2 timeout=0.5\ntake(queue)")
    assert reply.error[0] == "RunTimedOut", reply.text
    told = reply.text.split("When its time was over:\n")[1]
    assert re.match(r"ranks 0-1 wait for something in a queue:\n    In \[\d+\] line 2: take\(queue\)\n", told)


def test_a_deadlock_is_told_and_not_ended(prepared):
    reply = prepared.run("""%%parallel nprocs=2 timeout=8
with nbshm.lock():
    nbshm.barrier()
""")
    assert reply.error[0] == "RunTimedOut", reply.text
    assert (
        "nbshm: This looks like a deadlock: each rank waits, and none is left to wake another." in reply.text
    )
    assert "waits for the barrier:" in reply.text
    assert "waits for the run's lock:" in reply.text


def test_what_keeps_a_finished_rank_from_ending_is_told(prepared):
    reply = prepared.run("""%%parallel nprocs=2
def linger():
    time.sleep(3)
threading.Thread(target=linger).start()
rank
""").check()
    assert re.search(
        r"waits for a thread that its code started and that still runs: In \[\d+\] line 3", reply.text
    )
    assert "[0, 1]" in reply.text


@pytest.mark.skipif("not __import__('importlib').util.find_spec('ipykernel.subshell')")
def test_a_subshell_sees_and_stops_the_run_of_a_busy_cell(prepared, ready):
    """Where the kernel has subshells, other code runs while a cell does."""
    message = prepared.send("%%parallel nprocs=2\nready(rank)\ntime.sleep(600)")
    ready(2)
    client = prepared.client
    client.control_channel.send(client.session.msg("create_subshell_request"))
    subshell = client.get_control_msg(timeout=30)["content"]["subshell_id"]
    content = {
        "code": "%parallel_stacks\nfrom nbshm.extension import current_session\n"
        "for run in current_session().runs: run.stop()",
        "silent": False,
        "store_history": False,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": True,
    }
    asked = client.session.msg("execute_request", content)
    asked["header"]["subshell_id"] = subshell
    client.shell_channel.send(asked)
    told, error = "", None
    while error is None:
        reply = client.get_iopub_msg(timeout=60)
        if reply["msg_type"] == "stream":
            told += reply["content"]["text"]
        if reply["msg_type"] == "error":
            assert reply["parent_header"]["msg_id"] == message, reply["content"]
            error = reply["content"]
    assert re.search(r"In \[\d+\]:\nranks 0-1 are at:\n    In \[\d+\] line 3: time.sleep\(600\)", told), told
    assert error["ename"] == "RunInterrupted"
    assert "the run was stopped." in error["evalue"]
