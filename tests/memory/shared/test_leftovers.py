"""Files of dead processes in /dev/shm, of which nothing else may be removed."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nbshm.memory.shared import leftovers
from nbshm.memory.shared.leftovers import Leftover, remove


@pytest.fixture
def dead() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(60)
    return process.pid


def left(directory: Path) -> list[str]:
    return sorted(found.path.name for found in leftovers.leftovers(directory))


def write(path: Path) -> Path:
    path.write_bytes(bytes(4096))
    return path


def test_a_file_of_a_dead_process_is_found_and_removed(tmp_path: Path, dead: int):
    path = write(tmp_path / f"torch_{dead}_123_0")
    (found,) = leftovers.leftovers(tmp_path)
    assert found == Leftover(path=path, pid=dead, nbytes=4096)
    assert remove(found)
    assert not path.exists()
    assert not remove(found)


def test_files_of_the_living_and_of_others_are_left_alone(tmp_path: Path, dead: int):
    write(tmp_path / f"torch_{os.getpid()}_123_0")
    write(tmp_path / "psm_1234abcd")
    write(tmp_path / f"other_{dead}_123_0")
    (tmp_path / f"torch_{dead}_1_1").symlink_to(write(tmp_path / "elsewhere"))
    assert left(tmp_path) == []


def test_a_file_that_somebody_has_open_is_left_alone(tmp_path: Path, dead: int):
    path = write(tmp_path / f"torch_{dead}_123_0")
    with path.open("rb"):
        assert left(tmp_path) == []
    assert left(tmp_path) == [path.name]


def test_a_file_that_somebody_has_mapped_is_left_alone(tmp_path: Path, dead: int):
    path = write(tmp_path / f"torch_{dead}_123_0")
    found = Leftover(path=path, pid=dead, nbytes=4096)
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 4096)
    with mapped:
        assert left(tmp_path) == []
        assert not remove(found)
    assert path.exists()


def test_a_file_of_another_user_is_left_alone(tmp_path: Path, dead: int, monkeypatch):
    write(tmp_path / f"torch_{dead}_123_0")
    monkeypatch.setattr(leftovers.os, "getuid", lambda: os.geteuid() + 1)
    assert left(tmp_path) == []


def test_where_there_is_no_such_directory_there_is_nothing(tmp_path: Path):
    assert left(tmp_path / "none") == []
