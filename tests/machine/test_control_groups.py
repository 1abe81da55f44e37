from __future__ import annotations

from pathlib import Path

from nbshm.machine.control_groups import group_directories, text_of


def groups(tmp_path: Path, controller: str, text: str) -> list[Path]:
    membership = tmp_path / "membership"
    membership.write_text(text)
    return list(group_directories(controller, membership=membership, mounted=Path("/sys")))


def test_the_groups_of_a_controller_are_those_up_to_the_top(tmp_path):
    text = "4:memory,hugetlb:/a/b\n3:cpu:/x\n0::/c\n"
    assert groups(tmp_path, "memory", text) == [
        Path("/sys/memory/a/b"),
        Path("/sys/memory/a"),
        Path("/sys/memory"),
        Path("/sys/c"),
        Path("/sys"),
    ]
    assert groups(tmp_path, "cpu", text)[:2] == [Path("/sys/cpu/x"), Path("/sys/cpu")]


def test_without_control_groups_there_is_nothing(tmp_path):
    assert list(group_directories("cpu", membership=tmp_path / "none")) == []
    assert text_of(tmp_path / "none") == ""
