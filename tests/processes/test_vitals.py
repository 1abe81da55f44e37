from __future__ import annotations

import os

from nbshm.processes import vitals


def test_a_groups_count_of_memory_kills_is_read_in_both_versions(tmp_path, monkeypatch):
    monkeypatch.setattr(vitals, "group_directories", lambda _: [tmp_path / "none", tmp_path])
    assert vitals.memory_kills() is None
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert vitals.memory_kills() == 3
    (tmp_path / "memory.events").write_text("low 0\noom 4\noom_kill 2\noom_group_kill 0\n")
    assert vitals.memory_kills() == 2


def test_memory_is_that_of_a_living_process():
    assert vitals.resident_memory(os.getpid()) > 1 << 20
    assert vitals.resident_memory(2**22 + 1) == 0
