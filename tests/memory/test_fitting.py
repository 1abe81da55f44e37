from __future__ import annotations

import resource

import numpy as np
import pytest
import torch
from memory_notebook import Notebook, in_segment

from nbshm.errors import NoRoom
from nbshm.memory import fitting
from nbshm.memory.shared import limits


@pytest.fixture
def limited():
    """Set resource limits that are put back afterwards."""
    before = {what: resource.getrlimit(what) for what in (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)}

    def limit(what: int, soft: int, hard: int | None = None) -> None:
        resource.setrlimit(what, (soft, before[what][1] if hard is None else hard))

    yield limit
    for what, values in before.items():
        resource.setrlimit(what, values)


def test_what_exceeds_the_file_size_limit_is_refused_by_name(notebook: Notebook, limited):
    limited(resource.RLIMIT_FSIZE, 2**20)
    tensor = notebook["big"] = torch.zeros(2_500_000)
    notebook["arr"], notebook["small"] = np.zeros(300_000), torch.zeros(2)
    address = tensor.data_ptr()
    with pytest.raises(NoRoom, match=r"'big': 9.5 MiB needed, 1.0 MiB left in .*RLIMIT_FSIZE.*ulimit"):
        notebook.place("big", "small")
    with pytest.raises(NoRoom, match=r"'arr': 2.3 MiB needed"):
        notebook.place("arr", "small")
    assert tensor.data_ptr() == address
    assert len(notebook.segments) == 0


def test_small_things_still_work_under_a_file_size_limit(notebook: Notebook, limited):
    limited(resource.RLIMIT_FSIZE, 2**20)
    notebook["many"] = [torch.ones(200_000) for _ in range(4)]
    notebook.run("for tensor in many: tensor += 1", "many")
    assert all(tensor[-1] == 2 for tensor in notebook["many"])


def test_what_exceeds_the_memory_is_refused_by_the_biggest_name(notebook: Notebook, monkeypatch):
    room = limits.Room(nbytes=1000, where="this container's memory limit", remedy="Raise it.")
    monkeypatch.setattr(limits, "memory_left", lambda: room)
    notebook["model"], notebook["little"] = {"weights": [torch.zeros(300)]}, torch.zeros(2)
    with pytest.raises(
        NoRoom, match=r"'model': 1.2 KiB needed, 1000 bytes left in this container's.*Raise it"
    ):
        notebook.place("model", "little")
    assert len(notebook.segments) == 0


def test_what_is_moved_counts_once_at_a_time(notebook: Notebook, monkeypatch):
    room = limits.Room(nbytes=1500, where="", remedy="")
    monkeypatch.setattr(limits, "memory_left", lambda: room)
    notebook["first"], notebook["second"] = torch.zeros(300), torch.zeros(300)
    notebook.run("first += 1", "first", "second")
    assert in_segment(notebook, notebook["first"])


def test_memory_that_nobody_has_touched_is_not_given_back_by_its_move(notebook: Notebook, monkeypatch):
    monkeypatch.setattr(
        limits, "memory_left", lambda: limits.Room(nbytes=60 << 20, where="memory", remedy="")
    )
    # From 32 MiB on the C library asks the system for memory, whatever it has from before.
    notebook["first"], notebook["second"] = np.zeros(5 << 20), np.zeros(5 << 20)
    with pytest.raises(NoRoom, match=r"(79|80)\.\d MiB needed, 60\.0 MiB left"):
        notebook.place("first", "second")
    notebook["first"] += 1
    notebook["second"] += 1
    notebook.run("first += 1", "first", "second")
    assert in_segment(notebook, notebook["first"])


def test_addresses_that_a_limit_does_not_allow_are_refused_before_they_are_asked_for(notebook, monkeypatch):
    room = limits.Room(nbytes=1000, where="what this process may map (RLIMIT_AS)", remedy="ulimit -v")
    monkeypatch.setattr(limits, "addresses_left", lambda: room)
    notebook["model"] = torch.zeros(300)
    with pytest.raises(NoRoom, match=r"'model': 1.2 KiB needed, 1000 bytes left in .*RLIMIT_AS.*ulimit -v"):
        notebook.place("model")


def test_the_soft_limit_of_descriptors_is_raised(notebook: Notebook, limited):
    limited(resource.RLIMIT_NOFILE, 80)
    notebook["many"] = [torch.zeros(2_100_000) for _ in range(3)]
    notebook.run("many[2][0] = 1", "many")
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 80
    assert notebook["many"][2][0] == 1


def test_where_descriptors_are_few_big_tensors_share_a_segment(notebook: Notebook, monkeypatch):
    monkeypatch.setattr(fitting, "allow_descriptors", lambda _: 65)
    notebook["first"], notebook["second"] = torch.zeros(2_100_000), torch.zeros(2_100_000)
    _, placement = notebook.place("first", "second")
    with placement:
        assert len(placement.fds) == 1
