from __future__ import annotations

import os
import signal
import threading
import time
from multiprocessing import forkserver
from pathlib import Path

import pytest
from crews import supervised, wait_until_gone

from nbshm.machine.proc import is_stopped
from nbshm.processes.launcher import Launcher
from nbshm.processes.standby import Standby


@pytest.fixture
def launcher_of_its_own(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    launcher = Launcher(work="behaviours:run", preload=["group_leader"])
    launcher.prepare()
    yield launcher
    launcher.close()


def standing_by(launcher, many, seconds=30) -> list[int]:
    """Wait until that many stand by; return their process ids."""
    limit = time.monotonic() + seconds
    while len(launcher._standby) != many:
        assert time.monotonic() < limit, f"{len(launcher._standby)} stand by, not {many}"
        time.sleep(0.002)
    return [newcomer._popen.pid for newcomer in launcher._standby._ready]


def pids_of_a_run(launcher, nprocs) -> list[int]:
    with supervised(launcher, "forkserver", nprocs, "echo") as (supervisor, workers):
        list(supervisor)
        assert supervisor.verdict.ending == "finished"
        return [worker.pid for worker in workers]


def test_those_that_stand_by_are_the_next_run_s_workers(launcher_of_its_own):
    launcher_of_its_own.stand_by(2)
    ready = standing_by(launcher_of_its_own, 2)
    assert pids_of_a_run(launcher_of_its_own, 3)[:2] == ready
    assert len(launcher_of_its_own._standby) == 0


def test_as_many_as_the_run_had_ranks_are_made_when_it_has_ended(launcher_of_its_own):
    with launcher_of_its_own.launch(3, "forkserver", standby=None):
        assert len(launcher_of_its_own._standby) == 0
    standing_by(launcher_of_its_own, 3)


def test_those_that_are_too_many_end(launcher_of_its_own):
    launcher_of_its_own.stand_by(3)
    stays, *others = standing_by(launcher_of_its_own, 3)
    launcher_of_its_own.stand_by(1)
    assert standing_by(launcher_of_its_own, 1) == [stays]
    for pid in others:
        wait_until_gone(pid)


def test_one_that_was_killed_is_nobodys_worker(launcher_of_its_own):
    launcher_of_its_own.stand_by(2)
    killed, other = standing_by(launcher_of_its_own, 2)
    os.kill(killed, signal.SIGKILL)
    wait_until_gone(killed)
    first, second = pids_of_a_run(launcher_of_its_own, 2)
    assert first == other
    assert second != killed


def test_one_that_was_stopped_is_nobodys_worker_and_ends(launcher_of_its_own):
    launcher_of_its_own.stand_by(2)
    stopped, other = standing_by(launcher_of_its_own, 2)
    os.kill(stopped, signal.SIGSTOP)
    limit = time.monotonic() + 5
    while not is_stopped(stopped):
        assert time.monotonic() < limit, "it goes on"
    first, second = pids_of_a_run(launcher_of_its_own, 2)
    assert first == other
    assert second != stopped
    wait_until_gone(stopped)


def test_they_do_not_serve_when_their_server_has_been_killed(launcher_of_its_own):
    launcher_of_its_own.stand_by(2)
    ready = standing_by(launcher_of_its_own, 2)
    server = launcher_of_its_own._server.pid
    os.kill(server, signal.SIGKILL)
    wait_until_gone(server)
    assert not set(pids_of_a_run(launcher_of_its_own, 2)) & set(ready)


def test_a_new_server_means_new_ones(launcher_of_its_own):
    launcher_of_its_own.stand_by(1)
    (old,) = standing_by(launcher_of_its_own, 1)
    launcher_of_its_own._server.renew()
    assert pids_of_a_run(launcher_of_its_own, 1) != [old]
    wait_until_gone(old)


def test_they_end_with_the_launcher_also_while_a_forked_child_lives(launcher_of_its_own):
    launcher_of_its_own.stand_by(2)
    ready = standing_by(launcher_of_its_own, 2)
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        os.close(write_end)
        os.read(read_end, 1)  # until the test has ended
        os._exit(0)
    os.close(read_end)
    try:
        launcher_of_its_own.close()
        for pid in ready:
            wait_until_gone(pid)
    finally:
        os.close(write_end)
        os.waitpid(child, 0)


def test_nobody_stands_by_where_that_would_take_most_descriptors(launcher_of_its_own, monkeypatch):
    monkeypatch.setattr("nbshm.processes.allowances.allow_descriptors", lambda count: count - 1)
    launcher_of_its_own.stand_by(2)
    assert launcher_of_its_own._standby._timer is None


def test_a_server_that_has_imported_more_follows_once_it_is_there(launcher_of_its_own):
    first = launcher_of_its_own._server.pid
    launcher_of_its_own.stand_by(2, ["ftplib"])
    ready = standing_by(launcher_of_its_own, 2)
    assert launcher_of_its_own._server.pid not in {None, first}
    wait_until_gone(first)
    assert pids_of_a_run(launcher_of_its_own, 2) == ready
    launcher_of_its_own.stand_by(1, ["ftplib"])
    assert launcher_of_its_own._server.next is None


def test_a_server_that_never_comes_is_waited_for_neither_by_a_run_nor_at_the_end(
    launcher_of_its_own, monkeypatch
):
    is_waited_for = threading.Event()

    def read_signed(fd, read=forkserver.read_signed):
        is_waited_for.set()
        return read(fd)

    monkeypatch.setattr(forkserver, "read_signed", read_signed)
    launcher_of_its_own.stand_by(2, ["slow_to_import"])
    coming = launcher_of_its_own._server.next.pid
    assert is_waited_for.wait(30)  # by the thread that is to have workers stand by
    assert len(pids_of_a_run(launcher_of_its_own, 1)) == 1
    launcher_of_its_own.close()
    assert not Path(f"/proc/{coming}").exists()
    assert len(launcher_of_its_own._standby) == 0


def test_runs_that_end_while_workers_are_made_start_no_thread_each():
    is_made, may_go_on = threading.Event(), threading.Event()

    def make():
        is_made.set()
        assert may_go_on.wait(30)
        raise EOFError

    standby = Standby(make)
    before = threading.active_count()
    standby.want(2)
    assert is_made.wait(30)
    for _ in range(5):
        standby.want(2)
    assert threading.active_count() == before + 1
    may_go_on.set()
    standby.close()


def test_without_another_thread_nobody_stands_by(monkeypatch):
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    standby = Standby(lambda: pytest.fail("made"))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        standby.want(2)
    assert len(standby) == 0
    standby.close()
