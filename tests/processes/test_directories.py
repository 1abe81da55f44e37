"""Directories for files of workers: where they are made."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from nbshm.processes.directories import Directory
from nbshm.processes.sweeping import Sweeper


@pytest.mark.parametrize("length", [30, 90])
def test_sockets_can_be_bound_in_them_however_long_the_path_of_temporary_files_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    place = tmp_path / ("x" * length)
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    sweeper = Sweeper()
    directory = Directory(sweeper)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(os.path.join(directory.path, "listener-12345678"))  # noqa: PTH118  # as multiprocessing calls it
    directory.close()
    sweeper.close()
    assert not Path(directory.path).exists()
