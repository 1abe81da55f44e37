from __future__ import annotations

import linecache
import pickle
import sys
from dataclasses import dataclass

import pytest

from nbshm.failures.chains import chain, trim
from nbshm.failures.packed_exceptions import ExceptionStandIn, pack_exception, unpack_exception
from nbshm.failures.tracebacks import render_plainly, report_exception

CELL = "/tmp/ipykernel_1/5.py"  # noqa: S108  # as ipykernel names cells; nothing is there


class NeedsTwoError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class ForgetfulError(Exception):
    def __reduce__(self):
        return ForgetfulError, (), self.__dict__

    def __str__(self):
        return self.args[0]


class SpeechlessError(Exception):
    def __str__(self):
        raise ValueError


@dataclass(frozen=True)
class FrozenError(Exception):
    code: int


class UnreducibleError(Exception):
    def __reduce__(self):
        raise TypeError("not today")


def raised(source: str, **names) -> BaseException:
    """Run source as a cell and return what it raises."""
    linecache.cache[CELL] = (len(source), None, source.splitlines(keepends=True), CELL)
    try:
        exec(compile(source, CELL, "exec"), names)  # noqa: S102
    except BaseException as error:  # noqa: BLE001
        return error
    raise AssertionError("nothing was raised")


def test_a_report_names_type_message_and_the_last_line_in_a_cell():
    error = raised("def f(x):\n    return int(x)\nf('no')")
    report = report_exception(error, cells={CELL: 7})
    assert (report.type_name, report.message) == (
        "ValueError",
        "invalid literal for int() with base 10: 'no'",
    )
    assert report.where == "In [7] line 2"
    assert [(frame.line, frame.function, frame.text) for frame in report.frames[-2:]] == [
        (3, "<module>", "f('no')"),
        (2, "f", "return int(x)"),
    ]


def test_the_place_is_the_cells_even_if_a_library_raised():
    report = report_exception(raised("import json\njson.loads('{')"), cells={CELL: 7})
    assert report.where == "In [7] line 2"


def test_without_cells_the_place_is_a_file():
    assert report_exception(raised("1 / 0")).where == "5.py line 1"


def test_an_exception_that_was_never_raised_has_no_place():
    assert report_exception(ValueError("x")).where is None


def test_a_syntax_error_in_a_cell_has_a_place():
    error = raised("x = 1\nx = = 3")
    assert report_exception(error.with_traceback(None), cells={CELL: 7}).where == "In [7] line 2"


def test_failures_at_the_same_line_have_the_same_signature_whatever_they_say():
    one, other = (
        report_exception(raised("raise ValueError(rank)", rank=rank), cells={CELL: 7}) for rank in (0, 1)
    )
    assert one.message != other.message
    assert one.signature == other.signature


def test_a_report_travels():
    report = report_exception(raised("1 / 0"), cells={CELL: 7})
    assert pickle.loads(pickle.dumps(report)) == report


def test_an_exception_that_cannot_say_what_it_is_is_reported():
    report = report_exception(SpeechlessError())
    assert report.message == "<unprintable SpeechlessError object>"
    assert "SpeechlessError" in report.rendered


def test_the_plain_rendering_is_pythons():
    assert render_plainly(ValueError("x")) == "ValueError: x\n"


def test_a_chain_is_listed_from_the_latest_to_the_first():
    error = raised("try:\n    1 / 0\nexcept Exception as e:\n    raise KeyError('k') from e")
    assert [type(link) for link in chain(error)] == [KeyError, ZeroDivisionError]


def test_a_chain_that_bites_its_tail_ends():
    one, other = ValueError(), KeyError()
    one.__context__, other.__cause__ = other, one
    assert chain(one) == [one, other]


def test_frames_of_hidden_directories_are_trimmed_everywhere():
    error = raised(
        "def f():\n    try:\n        1 / 0\n    except Exception as e:\n        raise KeyError from e\nf()"
    )
    trim(error, (CELL,))
    assert all(frame.filename != CELL for frame in report_exception(error).frames)
    assert error.__cause__.__traceback__ is None


def test_an_exception_that_takes_no_attributes_is_trimmed_and_comes_back():
    error = raised("raise FrozenError(5) from KeyError('why')", FrozenError=FrozenError)
    trim(error, (CELL,))
    assert all(frame.filename != CELL for frame in report_exception(error).frames)
    back = unpack_exception(pack_exception(error))
    assert (back.code, repr(back.__cause__), back.__suppress_context__) == (5, "KeyError('why')", True)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="groups came with Python 3.11")
def test_frames_in_members_of_a_group_are_trimmed():
    member = raised("1 / 0")
    trim(ExceptionGroup("all", [member]), (CELL,))  # noqa: F821  # where it exists
    assert all(frame.filename != CELL for frame in report_exception(member).frames)


def test_an_exception_comes_back_with_causes_contexts_and_attributes():
    error = raised("try:\n    1 / 0\nexcept Exception:\n    raise OSError(5, 'disk')")
    back = unpack_exception(pack_exception(error))
    assert (type(back), back.errno, type(back.__context__)) == (OSError, 5, ZeroDivisionError)
    error.__cause__ = KeyError("why")
    back = unpack_exception(pack_exception(error))
    assert (repr(back.__cause__), back.__suppress_context__) == ("KeyError('why')", True)


@pytest.mark.parametrize("error", [NeedsTwoError(1, 2), UnreducibleError("x"), ForgetfulError("x")])
def test_an_exception_comes_back_although_it_does_not_pickle_by_itself(error):
    error.extra = "kept"
    back = unpack_exception(pack_exception(error))
    assert (type(back), str(back), back.extra) == (type(error), str(error), "kept")


def test_an_exception_that_would_not_come_back_is_not_packed():
    assert pack_exception(ValueError(lambda: 0)) is None


def test_a_cause_that_would_not_come_back_is_stood_in_for():
    error = ValueError("outer")
    error.__cause__ = ValueError(unpicklable := lambda: 0)
    cause = unpack_exception(pack_exception(error)).__cause__
    assert type(cause) is ExceptionStandIn
    assert str(cause) == f"ValueError: {unpicklable}"


def test_deep_recursion_gives_a_short_report():
    report = report_exception(raised("def f(n): return f(n + 1)\nf(0)"), cells={CELL: 7})
    assert 50 < len(report.frames) <= 100
    assert report.where == "In [7] line 1"


def test_half_a_surrogate_pair_is_told_as_an_escape():
    error = ValueError("half \ud83d")
    error.__notes__ = ["noted \ud83d"]  # as `add_note` does, which Python 3.10 has not
    report = report_exception(error)
    assert (report.message, report.notes) == ("half \\ud83d", ("noted \\ud83d",))
    assert report.rendered.encode()


@pytest.mark.parametrize(("notes", "told"), [((1, None, "x"), ("1", "None", "x")), ("one", ("one",))])
def test_notes_that_are_no_strings_are_told_too(notes, told):
    error = ValueError("noted")
    error.__notes__ = notes
    assert report_exception(error).notes == told
