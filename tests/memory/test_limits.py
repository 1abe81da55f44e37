from __future__ import annotations

import resource
from pathlib import Path

from nbshm.memory import limits


def test_a_machine_has_some_memory_left():
    room = limits.memory_left()
    assert room is not None
    assert 0 < room.nbytes < 2**50


def test_both_versions_of_control_groups_are_read(tmp_path):
    new, old = tmp_path / "new", tmp_path / "old"
    for directory in (new, old):
        directory.mkdir()
    (new / "memory.max").write_text("1000\n")
    (new / "memory.current").write_text("400\n")
    (new / "memory.stat").write_text("anon 5\ninactive_file 100\n")
    (old / "memory.limit_in_bytes").write_text("1000\n")
    (old / "memory.usage_in_bytes").write_text("400\n")
    assert [limits.room_in_group(directory).nbytes for directory in (new, old)] == [700, 600]


def test_a_group_without_a_limit_sets_none(tmp_path):
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert limits.room_in_group(tmp_path) is None
    assert limits.room_in_group(tmp_path / "missing") is None


def test_the_groups_of_this_process_are_those_up_to_the_top():
    text = "4:memory:/a/b\n3:cpu:/x\n0::/c\n"
    assert list(limits.group_directories(text, Path("/sys"))) == [
        Path("/sys/memory/a/b"),
        Path("/sys/memory/a"),
        Path("/sys/memory"),
        Path("/sys/c"),
        Path("/sys"),
    ]


def test_the_file_size_limit_is_read(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert limits.largest_file() is None
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000, resource.RLIM_INFINITY))
    assert limits.largest_file().nbytes == 1000


def test_descriptors_are_counted_against_the_limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (90, hard))
        assert limits.descriptors_left(5) >= 5
        assert limits.descriptors_left(2**40) < 2**40
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
