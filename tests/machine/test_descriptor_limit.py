from __future__ import annotations

import contextlib
import os
import re
import resource
from collections.abc import Iterator

import pytest

from nbshm.machine.descriptor_limit import (
    allow_descriptors,
    are_fewer_left_than,
    descriptors_in_words,
    opened_descriptors,
)

NOFILE = resource.RLIMIT_NOFILE


@pytest.fixture(autouse=True)
def hard() -> Iterator[int]:
    before = resource.getrlimit(NOFILE)
    yield before[1]
    resource.setrlimit(NOFILE, before)


@pytest.fixture
def told(monkeypatch):
    """Have other limits told than there are, none changed: a hard limit can not be raised again."""

    def tell(soft: int, hard: int) -> None:
        monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
        monkeypatch.setattr(resource, "setrlimit", lambda *_: None)

    yield tell
    monkeypatch.undo()


def test_a_limit_that_is_high_enough_is_left_alone():
    before = resource.getrlimit(NOFILE)
    assert allow_descriptors(5) >= 5
    assert resource.getrlimit(NOFILE) == before


def test_the_soft_limit_is_raised_as_far_as_it_goes(hard):
    resource.setrlimit(NOFILE, (max(opened_descriptors()) + 1, hard))
    assert allow_descriptors(5) >= 5
    assert allow_descriptors(2**40) < 2**40
    assert resource.getrlimit(NOFILE)[0] == hard


def test_where_none_is_left_the_limit_is_raised(hard):
    fds = [os.dup(0)]
    resource.setrlimit(NOFILE, (max(opened_descriptors()) + 1, hard))
    try:
        while True:
            fds.append(os.dup(0))
    except OSError:
        allowed = allow_descriptors(5)
    finally:
        for fd in fds:
            os.close(fd)
    assert allowed >= 5


def test_with_what_was_asked_for_in_use_there_are_some_left(hard):
    resource.setrlimit(NOFILE, (max(opened_descriptors()) + 1, hard))
    allow_descriptors(5)
    made = [os.dup(0) for _ in range(5)]
    allowed = allow_descriptors(5)
    for fd in made:
        os.close(fd)
    assert allowed >= 5


def test_as_many_can_be_opened_as_is_said(hard, told):
    high = os.dup2(0, max(opened_descriptors()) + 20)  # above the limit that follows, it takes no room below
    resource.setrlimit(NOFILE, (high, hard))
    told(high, high)
    allowed, made = allow_descriptors(100), []
    with contextlib.suppress(OSError):
        while True:
            made.append(os.dup(0))
    for fd in (high, *made):
        os.close(fd)
    assert len(made) - allowed in {0, 1}  # the directory that they are counted in is open meanwhile


def test_whether_descriptors_are_few_is_seen_by_the_number_of_a_new_one(hard):
    newest = os.dup(0)
    os.close(newest)
    resource.setrlimit(NOFILE, (newest + 50, hard))
    assert not are_fewer_left_than(50)
    assert are_fewer_left_than(51)
    resource.setrlimit(NOFILE, (newest, hard))
    assert are_fewer_left_than(1)


@pytest.mark.parametrize(
    ("limits", "words"),
    [((64, 64), r"\d+ of 64$"), ((64, 99), r"of 64 \(up to 99 if need be\)"), ((-1, -1), "without a limit")],
)
def test_the_count_and_the_limits_are_said_in_words(told, limits, words):
    told(*limits)
    assert re.search(words, descriptors_in_words())
