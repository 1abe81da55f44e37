from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest
from crews import METHODS, perform, supervised, wait_until_gone, when_ready

from nbshm.default_start_method import start_method_kept
from nbshm.errors import ParallelError
from nbshm.processes.generations import Generation
from nbshm.processes.kernel_signals import interrupts_blocked
from nbshm.processes.launcher import Launcher
from nbshm.processes.servers import Server
from nbshm.processes.sweeping import Sweeper


@pytest.fixture
def server():
    sweeper = Sweeper()
    server = Server(sweeper, preload=["nbshm.worker.life"])
    yield server
    server.close()
    sweeper.close()


@pytest.fixture
def importable(monkeypatch):
    """Let a forkserver find the modules of these tests."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))


@pytest.fixture
def own_launcher(importable):  # noqa: ARG001  # a fixture that a fixture needs
    """A launcher whose forkserver a test may ill-treat."""
    launcher = Launcher(work="behaviours:run", preload=["group_leader"])
    launcher.prepare()
    yield launcher
    launcher.close()


def server_pid(launcher):
    return launcher._server.pid


def blocked_signals(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("SigBlk:")[2].split()[0], 16)


@pytest.mark.usefixtures("importable")
def test_starting_does_not_wait_for_what_is_preloaded():
    launcher = Launcher(preload=["slow_to_import"])
    begun = time.perf_counter()
    launcher.prepare()
    seconds = time.perf_counter() - begun
    launcher.close()
    assert seconds < 1  # `slow_to_import` takes an hour


def test_a_server_is_started_once(server):
    server.ensure_started()
    pid = server.pid
    server.ensure_started()
    assert server.pid == pid


def test_a_server_has_interrupts_blocked(server):
    server.ensure_started()
    assert blocked_signals(server.pid) & (1 << (signal.SIGINT - 1))


def test_starting_a_server_leaves_the_kernel_as_it_was(server):
    server.ensure_started()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert multiprocessing.get_start_method(allow_none=True) is None


def test_a_closed_server_is_gone(server):
    server.ensure_started()
    pid = server.pid
    server.close()
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.usefixtures("importable")
def test_files_beside_the_notebook_are_not_taken_for_the_standard_librarys(tmp_path, monkeypatch, capfd):
    (tmp_path / "random.py").write_text("raise RuntimeError('not this one')")
    monkeypatch.chdir(tmp_path)
    launcher = Launcher(work="behaviours:run", preload=["group_leader"])
    try:
        assert perform(launcher, "forkserver", 1, "echo").verdict.ending == "finished"
    finally:
        launcher.close()
    assert capfd.readouterr().err == ""


def test_a_server_that_was_killed_is_replaced(own_launcher):
    killed = server_pid(own_launcher)
    os.kill(killed, signal.SIGKILL)
    wait_until_gone(killed)
    assert perform(own_launcher, "forkserver", 2, "echo").verdict.ending == "finished"
    assert server_pid(own_launcher) != killed


def killed_when_asked(monkeypatch, times: int) -> None:
    """Have servers killed that have been asked for a process, and have not got to it."""
    connect, asked = Generation.connect, iter(range(times))

    def asked_and_killed(self, fds):
        if next(asked, None) is None:
            return connect(self, fds)
        os.kill(self.pid, signal.SIGSTOP)
        child = connect(self, fds)
        os.kill(self.pid, signal.SIGKILL)
        return child

    monkeypatch.setattr(Generation, "connect", asked_and_killed)


def test_a_server_that_is_killed_while_it_makes_workers_is_replaced(own_launcher, monkeypatch):
    killed_when_asked(monkeypatch, 1)
    assert perform(own_launcher, "forkserver", 2, "echo").verdict.ending == "finished"


def test_servers_that_are_killed_again_and_again_are_told_in_words(own_launcher, monkeypatch):
    killed_when_asked(monkeypatch, 99)
    with pytest.raises(ParallelError, match="the forkserver that they come from ended 2 times") as told:
        own_launcher.launch(2, "forkserver")
    assert "start_method=spawn needs no forkserver" in str(told.value)


def test_a_server_whose_socket_was_removed_is_replaced(own_launcher):
    left = server_pid(own_launcher)
    shutil.rmtree(own_launcher._server._current._directory.path)
    assert perform(own_launcher, "forkserver", 2, "echo").verdict.ending == "finished"
    assert server_pid(own_launcher) != left
    wait_until_gone(left)


@pytest.mark.parametrize("method", METHODS)
def test_a_temporary_directory_that_is_gone_is_told_in_a_sentence(
    own_launcher, method, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(ParallelError) as told:
        own_launcher.launch(2, method)
    assert str(told.value) == (
        f"workers need a temporary directory, and none can be made in {tmp_path / 'gone'}: "
        "No such file or directory. Make room for it there, or restart the kernel with another TMPDIR."
    )


def test_a_server_that_somebody_waited_for_is_replaced(own_launcher):
    killed = server_pid(own_launcher)
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)
    assert perform(own_launcher, "forkserver", 1, "echo").verdict.ending == "finished"


def test_a_worker_whose_server_is_killed_is_seen_to_its_end(own_launcher):
    with supervised(own_launcher, "forkserver", 1, "wait_forever") as (supervisor, workers):
        next(iter(supervisor))
        os.kill(server_pid(own_launcher), signal.SIGKILL)
        wait_until_gone(server_pid(own_launcher))
        assert workers[0].exitcode is None
        supervisor.stop()
        list(supervisor)
        assert supervisor.verdict.exitcodes == (255,)
        assert supervisor.verdict.failures == ()


def test_ranks_that_have_given_a_result_need_no_server_to_tell_their_end(own_launcher):
    with supervised(own_launcher, "forkserver", 2, "until_its_server_is_gone", "ends") as (supervisor, _):
        when_ready(supervisor, lambda: os.kill(server_pid(own_launcher), signal.SIGKILL), nprocs=2)
    assert (supervisor.verdict.ending, supervisor.verdict.failures) == ("finished", ())


def test_an_end_that_no_server_tells_is_told_as_unknown(own_launcher):
    with supervised(own_launcher, "forkserver", 1, "until_its_server_is_gone", "exits") as (supervisor, _):
        when_ready(supervisor, lambda: os.kill(server_pid(own_launcher), signal.SIGKILL), nprocs=1)
    (failure,) = supervisor.verdict.failures
    assert (supervisor.verdict.ending, failure.exitcode, failure.is_lost) == ("failed", 255, True)


def test_an_exit_code_of_its_own_is_known(own_launcher):
    (failure,) = perform(own_launcher, "forkserver", 1, "exit_255").verdict.failures
    assert (failure.exitcode, failure.is_lost) == (255, False)


def test_a_renewed_server_serves_new_workers_and_the_old_one_ends_after_its_last(own_launcher):
    old = server_pid(own_launcher)
    with supervised(own_launcher, "forkserver", 1, "wait_forever") as (supervisor, _):
        next(iter(supervisor))
        own_launcher._server.renew()
        assert perform(own_launcher, "forkserver", 1, "echo").values() == [""]
        assert Path(f"/proc/{old}").exists()
    wait_until_gone(old)
    assert server_pid(own_launcher) != old


def test_the_users_own_forkserver_is_another(own_launcher):
    from multiprocessing import forkserver

    assert forkserver._forkserver._forkserver_pid != server_pid(own_launcher)


def test_an_interrupt_of_the_kernels_whole_group_does_not_reach_server_or_workers(own_launcher):
    (worker,) = perform(own_launcher, "forkserver", 1, "describe").values()
    assert os.getpgid(server_pid(own_launcher)) == server_pid(own_launcher)
    assert worker["group"] == worker["pid"]


def test_interrupts_are_blocked_only_inside_the_block():
    with interrupts_blocked():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_start_method_that_was_chosen_is_kept():
    multiprocessing.set_start_method("spawn")
    try:
        with start_method_kept():
            pass
        assert multiprocessing.get_start_method(allow_none=True) == "spawn"
    finally:
        multiprocessing.set_start_method(None, force=True)


def test_a_start_method_that_was_open_is_open_again():
    with start_method_kept():
        multiprocessing.get_start_method()
    assert multiprocessing.get_start_method(allow_none=True) is None


def test_a_renewed_server_tells_the_exit_codes_of_all_its_workers(own_launcher):
    for _ in range(10):  # its last worker's end and the end of those who hold it come at the same time
        with supervised(own_launcher, "forkserver", 2, "echo") as (supervisor, _):
            own_launcher._server.renew()
            list(supervisor)
            assert supervisor.verdict.ending == "finished"


def test_a_server_starts_where_main_says_nothing_of_itself(server, monkeypatch):
    monkeypatch.delattr(sys.modules["__main__"], "__spec__")  # as `%reset` leaves it
    server.ensure_started()
    assert server.pid
    assert not hasattr(sys.modules["__main__"], "__spec__")
