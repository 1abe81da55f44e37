"""`print` in a worker does what Python's does, in fewer writes."""

from __future__ import annotations

import builtins
import io
import pickle
import sys

import pytest

from nbshm.worker.printing import replace_print


class Stream(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []

    def write(self, text: str) -> int:
        self.writes.append(text)
        return super().write(text)


class Talking:
    def __str__(self) -> str:
        print("inner")
        return "outer"


@pytest.fixture
def prints(monkeypatch):
    """Give what replaces `print` and `sys.stdout`: pytest has its own stdout until the test itself begins."""

    def replaced() -> Stream:
        stream = Stream()
        monkeypatch.setattr(builtins, "print", print)  # put back afterwards
        monkeypatch.setattr(sys, "stdout", stream)
        replace_print(stream)
        return stream

    return replaced


def test_plain_values_are_one_write(prints):
    stream = prints()
    print("step", 1, 2.5, None, sep="-", end="!\n")
    print()
    assert stream.writes == ["step-1-2.5-None!\n", "\n"]


@pytest.mark.parametrize(
    "options", [{"sep": None}, {"end": None}, {"flush": True}, {"sep": "", "end": ""}, {"file": None}]
)
def test_it_writes_what_pythons_own_writes(prints, options):
    original, expected = print, io.StringIO()
    for values in (["a", [1], 2], ["a", 2], []):
        original(*values, **(options | {"file": expected}))
    stream = prints()
    for values in (["a", [1], 2], ["a", 2], []):
        print(*values, **options)
    assert stream.getvalue() == expected.getvalue()


def test_what_a_value_prints_while_it_is_printed_keeps_its_place(prints):
    stream = prints()
    print("first", Talking())
    assert stream.getvalue() == "first inner\nouter\n"


def test_wrong_arguments_are_refused_as_by_pythons_own(prints):
    prints()
    with pytest.raises(TypeError, match="sep must be None or a string"):
        print("a", 2, sep=1)


def test_another_file_or_another_stdout_is_written_to(prints, monkeypatch):
    stream, other = prints(), Stream()
    print("a", file=other)
    monkeypatch.setattr(sys, "stdout", other)
    print("b")
    assert (stream.getvalue(), other.getvalue()) == ("", "a\nb\n")


def test_it_is_pythons_own_for_pickle(prints):
    prints()
    assert b"builtins" in pickle.dumps(print)
    assert pickle.loads(pickle.dumps(print)) is print
