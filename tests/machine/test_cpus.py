"""CPUs allowed by affinity and by control groups."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from nbshm.machine.cpus import allowed_cpus, quota_cpus


def write(place: Path, name: str, text: str) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(text)


def test_the_smallest_quota_of_version_two_counts(tmp_path: Path) -> None:
    write(tmp_path / "pod", "cpu.max", "150000 100000\n")
    write(tmp_path / "pod" / "box", "cpu.max", "max 100000\n")
    assert quota_cpus([tmp_path / "pod" / "box", tmp_path / "pod", tmp_path]) == 1.5


def test_a_quota_of_version_one_is_read(tmp_path: Path) -> None:
    write(tmp_path, "cpu.cfs_quota_us", "200000")
    write(tmp_path, "cpu.cfs_period_us", "100000")
    assert quota_cpus([tmp_path]) == 2


def test_no_quota_of_version_one_is_no_limit(tmp_path: Path) -> None:
    write(tmp_path, "cpu.cfs_quota_us", "-1")
    write(tmp_path, "cpu.cfs_period_us", "100000")
    assert quota_cpus([tmp_path]) == math.inf


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert quota_cpus([]) == quota_cpus([tmp_path / "none"]) == math.inf


def test_the_affinity_of_this_process_is_an_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3})
    assert allowed_cpus() == 1
