from __future__ import annotations

import errno
import os

import pytest

from nbshm.errors import ParallelError
from nbshm.machine.memfds import new_memfd


def refuse_with(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def memfd_create(name: str) -> int:
        raise OSError(number, os.strerror(number), name)

    monkeypatch.setattr(os, "memfd_create", memfd_create)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_a_system_that_has_none_is_told_of(monkeypatch, number):
    refuse_with(monkeypatch, number)
    with pytest.raises(ParallelError) as told:
        new_memfd("test")
    assert str(told.value) == (
        f"memory can't be shared on this system: it refuses memfd_create ({os.strerror(number)}). "
        "Run Jupyter outside of the sandbox that forbids it (seccomp), or have it allowed there."
    )


def test_a_system_that_knows_none_is_told_of(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(
        ParallelError, match=r"memory can't be shared on this system: only Linux has memfds\."
    ):
        new_memfd("test")


def test_a_want_of_something_is_the_systems_own_error(monkeypatch):
    refuse_with(monkeypatch, errno.EMFILE)
    with pytest.raises(OSError, match="Too many open files"):
        new_memfd("test")
