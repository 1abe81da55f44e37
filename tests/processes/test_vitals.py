from __future__ import annotations

from nbshm.processes import vitals


def test_a_groups_count_of_memory_kills_is_read_in_both_versions(tmp_path, monkeypatch):
    monkeypatch.setattr(vitals, "group_directories", lambda _: [tmp_path / "none", tmp_path])
    assert vitals.memory_kills() is None
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert vitals.memory_kills() == 3
    (tmp_path / "memory.events").write_text("low 0\noom 4\noom_kill 2\noom_group_kill 0\n")
    assert vitals.memory_kills() == 2
