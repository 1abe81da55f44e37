from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nbshm.worker.imports import ImportWatch


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ImportWatch]:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "late_module.py").write_text("value = 1\n")
    (tmp_path / "late_package").mkdir()
    (tmp_path / "late_package" / "__init__.py").write_text("")
    (tmp_path / "late_package" / "part.py").write_text("value = 2\n")
    watch = ImportWatch()
    yield watch
    watch.close()
    for name in ("late_module", "late_package", "late_package.part"):
        sys.modules.pop(name, None)


def test_an_action_waits_for_the_import_and_finds_the_module_whole(watch):
    seen = []
    watch.when_imported("late_module", lambda module: seen.append(module.value))
    assert seen == []
    importlib.import_module("late_module")
    assert seen == [1]


def test_an_action_for_what_is_imported_is_done_at_once(watch):
    seen = []
    watch.when_imported("sys", seen.append)
    assert seen == [sys]


def test_actions_are_done_in_order_and_once(watch):
    seen = []
    watch.when_imported("late_module", lambda _: seen.append("first"))
    watch.when_imported("late_module", lambda _: seen.append("second"))
    importlib.reload(importlib.import_module("late_module"))
    assert seen == ["first", "second"]


def test_a_part_of_a_package_can_be_waited_for(watch):
    seen = []
    watch.when_imported("late_package.part", lambda module: seen.append(module.value))
    importlib.import_module("late_package.part")
    assert seen == [2]


def test_the_module_is_as_it_would_be_without_the_watch(watch):
    watch.when_imported("late_module", lambda _: None)
    module = importlib.import_module("late_module")
    assert "exec_module" not in vars(module.__spec__.loader)
    assert module.__loader__ is module.__spec__.loader


def test_a_module_that_is_missing_is_missing(watch):
    watch.when_imported("no_such_module_anywhere", lambda _: None)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_anywhere")


def test_a_closed_watch_does_nothing(watch):
    seen = []
    watch.when_imported("late_module", seen.append)
    watch.close()
    importlib.import_module("late_module")
    assert seen == []
    assert watch not in sys.meta_path


def test_two_watches_both_act(watch):
    other, seen = ImportWatch(), []
    watch.when_imported("late_module", lambda _: seen.append("one"))
    other.when_imported("late_module", lambda _: seen.append("other"))
    importlib.import_module("late_module")
    other.close()
    assert sorted(seen) == ["one", "other"]


FIRST_ROOM = """
import importlib, sys
from nbshm.worker.imports import ImportWatch

watch = ImportWatch()
watch.when_imported("torch", lambda _: importlib.import_module("nbshm.memory.tensors.plain_torch"))
importlib.import_module("nbshm.memory.tensors.storages")
"""


def test_a_room_may_be_the_first_to_need_torch():
    child = subprocess.run(
        [sys.executable, "-c", FIRST_ROOM], capture_output=True, text=True, timeout=100, check=False
    )
    assert (child.returncode, child.stderr) == (0, "")
