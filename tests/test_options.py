"""The options of a parallel cell: what is read, what is refused and in which words."""

from __future__ import annotations

import pytest

from nbshm import option_table
from nbshm import options as options_module
from nbshm.option_table import OPTIONS, Option, help_text, markdown_table, start_methods
from nbshm.options import OptionError, Options, parse, parse_defaults

DEFAULTS = Options(nprocs=4, start_method="forkserver")


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("nprocs=3", "nprocs", 3),
        ("  nprocs=3   seed=0 ", "seed", 0),
        ("start_method=spawn", "start_method", "spawn"),
        ("out=a", "out", ("a",)),
        ("out=a,b", "out", ("a", "b")),
        ("out=a, b", "out", ("a", "b")),
        ("out='a, b' nprocs=2", "out", ("a", "b")),
        ("send=table", "send", ("table",)),
        ("threads=2", "threads", 2),
        ("timeout=0.5", "timeout", 0.5),
        ("timeout=none", "timeout", None),
        ("grace=0", "grace", 0.0),
        ("nprocs='2'", "nprocs", 2),
        ("nprocs=2 # as many as there are files", "nprocs", 2),
        ("", "nprocs", 4),
    ],
)
def test_a_line_is_read(line: str, field: str, value: object) -> None:
    assert getattr(parse(line, DEFAULTS), field) == value


def test_what_the_line_leaves_open_is_as_in_the_defaults() -> None:
    defaults = Options(nprocs=7, start_method="spawn", timeout=3.0)
    assert parse("nprocs=2", defaults) == Options(nprocs=2, start_method="spawn", timeout=3.0)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("nproc=4", ["unknown option 'nproc'", "did you mean nprocs?", "start_method, out, send"]),
        ("NPROCS=4", ["did you mean nprocs?"]),
        ("workers=4", ["did you mean nprocs?"]),
        ("--n_jobs=4", ["did you mean nprocs?"]),
        ("group=crew", ["unknown option 'group'"]),
        ("background=Out", ["background=Out", "neither the cell's own (rank) nor IPython's (Out)"]),
        ("background=class", ["background=class", "the name of a variable: no keyword"]),
        ("out=class", ["out=class", "different names of variables (no keywords)"]),
        ("nprocs=0", ["nprocs=0", "a whole number from 1 to 1024"]),
        ("nprocs=-2", ["nprocs=-2", "a whole number from 1 to 1024"]),
        ("nprocs=2.5", ["nprocs=2.5", "a whole number"]),
        ("nprocs=abc", ["for the variable write nprocs={abc}"]),
        ("nprocs=len(x)", ["for the value of an expression write nprocs={len(x)}"]),
        ("nprocs=4, out=x", ["nprocs=4: write a space, not a comma, between it and out=."]),
        ("out=x,y,timeout=3", ["out=x,y: write a space, not a comma, between it and timeout=."]),
        ("nprocs={abc}", ["the notebook has no value for {abc}"]),
        ("nprocs=", ["nprocs needs a value", "nprocs=4"]),
        ("nprocs", ["nprocs needs a value", "nprocs=4"]),
        ("nprocs = 4", ["without spaces around '='"]),
        ("=4", ["without spaces around '='"]),
        ("4", ["did you mean nprocs=4?"]),
        ("f(rank)", ["'f(rank)' is not key=value"]),
        ("start_method=frok", ["did you mean fork?", "forkserver or spawn or fork"]),
        ("start_method=Spawn", ["did you mean spawn?"]),
        ("start_method=thread", ["start_method is forkserver or spawn or fork"]),
        ("out=a,", ["out=a,", "separated by commas"]),
        ("out=a,a", ["different names"]),
        ("out=2x", ["names of variables"]),
        ("out=class", ["names of variables"]),
        ("seed=-1", ["a whole number from 0 to 4294967295"]),
        ("timeout=0", ["a number of seconds above 0, or none"]),
        ("timeout=nan", ["a number of seconds above 0, or none"]),
        ("timeout=inf", ["a number of seconds above 0, or none"]),
        ("grace=-1", ["a number of seconds"]),
        ("nprocs=2 nprocs=2", ["nprocs is given twice"]),
        ("out=a,job background=job", ["'job' can't be bound to both", "use two names"]),
        ("out='a", ["the options can't be read: No closing quotation"]),
    ],
)
def test_a_wrong_line_is_told_in_one_line(line: str, parts: list[str]) -> None:
    with pytest.raises(OptionError) as caught:
        parse(line, DEFAULTS)
    message = str(caught.value)
    assert "\n" not in message
    assert [part for part in parts if part not in message] == [], message


def test_defaults_of_the_session_are_read() -> None:
    assert parse_defaults("nprocs=2 timeout=9") == {"nprocs": 2, "timeout": 9}


@pytest.mark.parametrize("line", ["out=a", "send=a", "seed=1", "seed"])
def test_what_belongs_to_one_cell_cannot_be_a_default(line: str) -> None:
    with pytest.raises(
        OptionError, match=r"can't be a default.*nprocs, start_method, threads, timeout, grace"
    ):
        parse_defaults(line)


def test_threads_are_each_ranks_share_of_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options_module, "allowed_cpus", lambda: 8)
    assert Options(nprocs=3).threads_per_worker == 2
    assert Options(nprocs=16).threads_per_worker == 1
    assert Options(nprocs=16, threads=5).threads_per_worker == 5


def test_more_than_four_ranks_a_cpu_are_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options_module, "allowed_cpus", lambda: 2)
    assert Options(nprocs=8).warnings == ()
    (line,) = Options(nprocs=9).warnings
    assert "nprocs=9" in line
    assert "2 CPUs" in line


def test_the_default_start_method_is_forkserver_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start_methods()[0] == "forkserver"
    monkeypatch.setattr(option_table.multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    assert Options().start_method == "spawn"


def test_the_help_names_every_option_with_its_default() -> None:
    for option in OPTIONS:
        for text in (help_text(), markdown_table()):
            assert option.example in text
            assert option.default in text


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_examples_and_offered_values_can_be_read(option: Option) -> None:
    def read(line: str) -> object:
        return parse(line, DEFAULTS) if option.cell else parse_defaults(line)

    read(option.example)
    for value in option.choices():
        read(f"{option.name}={value}")


@pytest.mark.parametrize("line", ["timeout=2m", "nprocs=4,", "nprocs=4;", "seed=1,2"])
def test_no_expression_is_proposed_where_none_was_written(line: str) -> None:
    with pytest.raises(OptionError) as raised:
        parse(line, Options())
    assert "{" not in str(raised.value)
