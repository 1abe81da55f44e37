from __future__ import annotations

import os
import resource

import pytest

from nbshm.memory.shared import limits


def test_a_machine_has_some_memory_left():
    room = limits.memory_left()
    assert room is not None
    assert 0 < room.nbytes < 2**50


@pytest.fixture
def group(tmp_path):
    """Return what writes a control group's files and tells what it leaves."""

    def left(swap: int = 0, **files: object) -> int | None:
        for name, content in files.items():
            (tmp_path / f"memory.{name}").write_text(f"{content}\n")
        room = limits.room_in_group(tmp_path, swap=swap)
        return room and room.nbytes

    return left


def test_a_group_of_version_two_leaves_its_limit_less_what_can_not_be_reclaimed(group):
    assert group(max=1000, current=400, stat="anon 5\nactive_file 7\ninactive_file 100") == 707


def test_a_group_of_version_one_counts_the_groups_below(group):
    stat = "inactive_file 3\ntotal_active_file 7\ntotal_inactive_file 100"
    assert group(limit_in_bytes=1000, usage_in_bytes=400, stat=stat) == 707


def test_a_group_of_version_two_may_use_swap_up_to_a_limit_of_its_own(group):
    assert group(swap=90, max=1000, current=400) == 690
    assert group(**{"swap.max": 50, "swap.current": 20}, swap=90) == 630
    assert group(**{"swap.max": "max"}, swap=90) == 690


def test_a_group_of_version_one_may_use_swap_up_to_the_limit_of_both(group):
    both = {"memsw.limit_in_bytes": 1200, "memsw.usage_in_bytes": 420}
    assert group(**both, limit_in_bytes=1000, usage_in_bytes=400, swap=5000) == 780


def test_a_group_without_a_limit_sets_none(group, tmp_path):
    assert limits.room_in_group(tmp_path / "missing", swap=0) is None
    assert group(max="max", current=400) is None


def test_a_machine_that_promises_no_more_than_it_has_says_so(tmp_path, monkeypatch):
    meminfo, overcommit = tmp_path / "meminfo", tmp_path / "overcommit"
    meminfo.write_text("MemAvailable: 900 kB\nSwapFree: 0 kB\nCommitLimit: 500 kB\nCommitted_AS: 400 kB\n")
    monkeypatch.setattr(limits, "_MEMORY", meminfo)
    monkeypatch.setattr(limits, "_OVERCOMMIT", overcommit)
    monkeypatch.setattr(limits, "group_directories", lambda _: ())
    for setting, where, kilobytes in [("0", "this machine's memory", 900), ("2", "promises", 100)]:
        overcommit.write_text(f"{setting}\n")
        room = limits.memory_left()
        assert where in room.where
        assert room.nbytes == kilobytes * 1024


def test_the_address_space_that_is_left_is_the_limit_less_what_is_mapped(monkeypatch):
    assert limits.addresses_left() is None
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**50, 2**50))
    assert 2**49 < limits.addresses_left().nbytes < 2**50


def test_room_in_dev_shm_is_what_the_file_system_has_left(tmp_path):
    status = os.statvfs(tmp_path)
    room = limits.shared_memory_left(str(tmp_path))
    assert abs(room.nbytes - status.f_bavail * status.f_frsize) < 2**30
    assert "--shm-size" in room.remedy


def test_a_dev_shm_that_can_not_be_written_to_has_no_room(tmp_path, monkeypatch):
    assert limits.shared_memory_left(str(tmp_path / "missing")).nbytes == 0
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert limits.shared_memory_left(str(tmp_path)).nbytes == 0
    monkeypatch.delattr(os, "memfd_create")
    assert limits.shared_memory_left(str(tmp_path / "missing")) is None  # not Linux


def test_the_file_size_limit_is_read(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert limits.largest_file() is None
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000, resource.RLIM_INFINITY))
    assert limits.largest_file().nbytes == 1000
