from __future__ import annotations

import os
import resource
from collections.abc import Iterator

import pytest
from crews import METHODS, perform

from nbshm.options import OptionError


@pytest.fixture
def limited() -> Iterator[object]:
    """Return what lowers the soft limit, so far as it is raised again without being asked."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda soft: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def no_more(limited, monkeypatch):
    """Return what has the hard limit told as low as the soft one: it could not be raised again later."""

    def limit(soft):
        limited(soft)
        monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
        monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
        return soft

    with monkeypatch.context():
        yield limit
    monkeypatch.undo()


def opened() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # numbers


@pytest.mark.parametrize("method", METHODS)
def test_too_many_workers_for_the_descriptors_are_refused_before_one_starts(launcher, method, no_more):
    before = opened()
    limit = no_more(before + 108)
    with pytest.raises(
        OptionError, match=r"^nprocs=12 needs 156 file descriptors here, and \d+ are left"
    ) as told:
        launcher.launch(12, method)
    assert f"of the {limit} that this process may open" in str(told.value)
    assert "Use nprocs=7 or less, or raise the limit (ulimit -n)" in str(told.value)
    assert opened() == before


@pytest.mark.parametrize("method", METHODS)
def test_as_many_workers_as_are_allowed_do_start(launcher, method, no_more):
    no_more(opened() + 24 + 1 + 4 * 11)
    assert perform(launcher, method, 4, "echo").verdict.ending == "finished"


def test_a_soft_limit_that_is_too_low_is_raised(launcher, limited):
    limited(opened() + 20)
    assert perform(launcher, "forkserver", 3, "echo").verdict.ending == "finished"
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > opened() + 20
