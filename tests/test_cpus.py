"""CPUs allowed by affinity and by control groups."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from nbshm.cpus import allowed_cpus, quota_cpus


def write(place: Path, name: str, text: str) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(text)


def test_a_quota_of_version_two_is_read_on_the_way_up(tmp_path: Path) -> None:
    write(tmp_path / "cgroups" / "pod", "cpu.max", "150000 100000\n")
    write(tmp_path / "cgroups" / "pod" / "box", "cpu.max", "max 100000\n")
    write(tmp_path, "membership", "0::/pod/box\n")
    assert quota_cpus(tmp_path / "cgroups", tmp_path / "membership") == 1.5


def test_a_quota_of_version_one_is_read(tmp_path: Path) -> None:
    write(tmp_path / "cgroups" / "cpu" / "box", "cpu.cfs_quota_us", "200000")
    write(tmp_path / "cgroups" / "cpu" / "box", "cpu.cfs_period_us", "100000")
    write(tmp_path, "membership", "9:memory:/box\n4:cpu,cpuacct:/box\n")
    assert quota_cpus(tmp_path / "cgroups", tmp_path / "membership") == 2


def test_no_quota_of_version_one_is_no_limit(tmp_path: Path) -> None:
    write(tmp_path / "cgroups" / "cpu", "cpu.cfs_quota_us", "-1")
    write(tmp_path / "cgroups" / "cpu", "cpu.cfs_period_us", "100000")
    write(tmp_path, "membership", "4:cpu,cpuacct:/elsewhere\n")
    assert quota_cpus(tmp_path / "cgroups", tmp_path / "membership") == math.inf


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert quota_cpus(tmp_path, tmp_path / "none") == math.inf


def test_the_affinity_of_this_process_is_an_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3})
    assert allowed_cpus() == 1
