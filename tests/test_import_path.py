from __future__ import annotations

import importlib
import sys

import pytest

from nbshm.import_path import import_path


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """The working directory, with one in it that holds a module; another working directory lies beside it."""
    for name in ("first", "second"):
        (tmp_path / name / "parts").mkdir(parents=True)
    (tmp_path / "first" / "parts" / "in_parts_of_first.py").touch()
    monkeypatch.chdir(tmp_path / "first")
    monkeypatch.setattr(sys, "path", ["", "parts", *sys.path])
    yield tmp_path
    sys.path_importer_cache.pop("parts", None)


def test_entries_are_absolute(directory):
    assert import_path()[:2] == [f"{directory}/first", f"{directory}/first/parts"]


def test_an_entry_goes_on_meaning_what_it_meant_when_it_was_used(directory, monkeypatch):
    importlib.import_module("in_parts_of_first")
    monkeypatch.chdir(directory / "second")
    assert import_path()[:2] == [f"{directory}/second", f"{directory}/first/parts"]


def test_other_entries_stay_as_they_are(directory, monkeypatch):
    monkeypatch.setattr(sys, "path", ["/usr/../lib/", directory])
    assert import_path() == ["/usr/../lib/", directory]


def test_relative_entries_of_a_directory_that_is_gone_stay_as_they_are(directory):
    (directory / "first" / "parts" / "in_parts_of_first.py").unlink()
    (directory / "first" / "parts").rmdir()
    (directory / "first").rmdir()
    assert import_path()[:2] == ["", "parts"]
