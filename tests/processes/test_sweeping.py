from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from crews import wait_until_gone

from nbshm.bystanders.sweeper import remains, remove_names
from nbshm.processes.sweeping import Sweeper


@pytest.fixture
def sweeper():
    sweeper = Sweeper()
    yield sweeper
    sweeper.close()


@pytest.fixture
def group():
    """A process that leads a group of its own and stays."""
    process = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_what_is_left_at_the_end_is_cleared_away(sweeper, group, tmp_path):
    (tmp_path / "directory" / "within").mkdir(parents=True)
    sweeper.begin_groups(group.pid)
    sweeper.begin_directory(tmp_path / "directory")
    sweeper.close()
    assert group.wait(10) == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_names_of_shared_memory_go_with_the_processes_that_gave_them(tmp_path):
    for name in ("torch_12_3_0", "torch_12_4_1", "torch_123_3_0", "torch_13_3_0", "psm_12", "sem.12"):
        (tmp_path / name).touch()
    remove_names([12, 13], str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["psm_12", "sem.12", "torch_123_3_0"]
    remove_names([12], str(tmp_path / "missing"))


def test_names_that_somebody_still_uses_stay(tmp_path):
    used = tmp_path / "torch_12_3_0"
    with used.open("w"):
        remove_names([12], str(tmp_path))
        assert used.exists()
    remove_names([12], str(tmp_path))
    assert not used.exists()


def test_names_of_a_group_that_is_left_are_removed_and_those_of_the_kernel_not_before_its_end(sweeper, group):
    of_group, of_kernel = (Path(f"/dev/shm/torch_{pid}_tested") for pid in (group.pid, os.getpid()))  # noqa: S108
    of_group.touch()
    of_kernel.touch()
    sweeper.begin_groups(group.pid)
    sweeper.begin_names(os.getpid())
    sweeper.close()
    assert not of_group.exists()
    of_kernel.unlink()


def test_names_of_those_that_are_killed_with_a_group_are_removed(sweeper):
    """The leader is a shell, and what it has started gives the name."""
    command = "sh -c 'touch /dev/shm/torch_$$_tested; echo $$; exec sleep 3600'; true"
    with subprocess.Popen(["sh", "-c", command], start_new_session=True, stdout=subprocess.PIPE) as leader:
        child = int(leader.stdout.readline())
        sweeper.begin_groups(leader.pid)
        sweeper.close()
    assert child != leader.pid
    assert not Path(f"/dev/shm/torch_{child}_tested").exists()  # noqa: S108  # torch's choice


def test_what_has_been_ended_is_left_alone(sweeper, group, tmp_path):
    sweeper.begin_groups(group.pid)
    sweeper.begin_directory(tmp_path)
    sweeper.end_groups(group.pid)
    sweeper.end_directory(tmp_path)
    sweeper.close()
    assert group.poll() is None
    assert tmp_path.exists()


def test_what_has_gone_by_itself_is_fine(sweeper, group, tmp_path):
    sweeper.begin_groups(group.pid)
    sweeper.begin_directory(tmp_path / "never there")
    sweeper.begin_file(tmp_path / "nor this")
    group.kill()
    group.wait()
    sweeper.close()


def test_a_sweeper_that_was_killed_is_replaced_and_told_everything(sweeper, group, tmp_path):
    sweeper.begin_groups(group.pid)
    killed = sweeper._process.pid
    os.kill(killed, signal.SIGKILL)
    wait_until_gone(killed)
    sweeper.begin_directory(tmp_path / "more")
    assert sweeper._process.pid != killed
    sweeper.close()
    assert group.wait(10) == -signal.SIGKILL


def test_a_directory_may_have_any_name(sweeper, tmp_path):
    directory = tmp_path / os.fsdecode(b"caf\xe9 of\tmine")
    directory.mkdir()
    sweeper.begin_directory(directory)
    sweeper.close()
    assert not directory.exists()


def test_files_stay_when_it_is_closed_since_their_owners_live_on(sweeper, tmp_path):
    (tmp_path / "file").write_text("in use")
    sweeper.begin_file(tmp_path / "file")
    sweeper.close()
    assert (tmp_path / "file").exists()


def test_files_go_with_the_kernel(sweeper, tmp_path):
    (tmp_path / "file").write_text("left")
    sweeper.begin_file(tmp_path / "file")
    process = sweeper._process
    sweeper.forget()  # as if this process had ended
    assert process.wait(10) == 0
    assert not (tmp_path / "file").exists()


def test_closing_twice_is_fine(sweeper):
    sweeper.start()
    sweeper.close()
    sweeper.close()


def test_only_what_was_not_ended_remains():
    told = ["+group 1\n", "+directory /a b\n", "+group 2\n", "-group 1\n"]
    assert remains(told) == {"group": {"2"}, "directory": {"/a b"}, "file": set(), "names": set()}
