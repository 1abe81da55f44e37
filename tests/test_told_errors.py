"""What errors keep alive when they have been told."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from traceback import walk_tb

import pytest

from nbshm.errors import CallInterrupted, ParallelError, RunInterrupted
from nbshm.told_errors import told_in_words


class Held:
    """Something that frames hold."""


def failing(raise_it: Callable[[], None], seen: list[weakref.ref[Held]]) -> None:
    held = Held()
    seen.append(weakref.ref(held))
    raise_it()


def interrupt() -> None:
    raise KeyboardInterrupt


def fail() -> None:
    try:
        interrupt()
    except KeyboardInterrupt as error:
        raise ParallelError("no") from error


def stop() -> None:
    raise RunInterrupted(by="stopped")


@pytest.mark.parametrize(
    ("raise_it", "words"),
    [(interrupt, "the call was interrupted"), (fail, "no"), (stop, "the run was stopped.")],
)
def test_an_error_is_told_in_its_words_and_holds_nothing(raise_it: Callable[[], None], words: str) -> None:
    seen: list[weakref.ref[Held]] = []
    with (
        pytest.raises((ParallelError, CallInterrupted), match=words) as caught,
        told_in_words(CallInterrupted("the call was interrupted")),
    ):
        failing(raise_it, seen)
    assert caught.value is not None
    assert seen[0]() is None


def test_any_other_error_keeps_its_frames() -> None:
    seen: list[weakref.ref[Held]] = []
    with (
        pytest.raises(ZeroDivisionError) as caught,
        told_in_words(CallInterrupted("the call was interrupted")),
    ):
        failing(lambda: 1 // 0, seen)  # type: ignore[arg-type, return-value]
    assert any("held" in frame.f_locals for frame, _ in walk_tb(caught.tb))


def test_an_error_that_is_handled_meanwhile_keeps_its_frames() -> None:
    seen: list[weakref.ref[Held]] = []
    try:
        failing(fail, seen)
    except ParallelError:
        with pytest.raises(ParallelError), told_in_words(CallInterrupted("the call was interrupted")):
            fail()
        held = seen[0]()
    assert held is not None
