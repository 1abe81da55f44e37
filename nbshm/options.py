"""The options of a parallel cell: `nprocs=4 start_method=spawn out=losses` as checked, frozen `Options`."""

from __future__ import annotations

import difflib
import keyword
import math
import multiprocessing
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from nbshm.cpus import allowed_cpus

StartMethod: TypeAlias = Literal["forkserver", "spawn", "fork"]

_LARGEST_SEED = 2**32 - 1  # numpy takes no larger one
_CROWDED = 4  # times the CPUs: ranks that compute then mostly wait for each other


class OptionError(ValueError):
    """A line of options is wrong; the message says in one line what, and what is right."""


def start_methods() -> tuple[StartMethod, ...]:
    """Return the start methods of this platform, the default one first."""
    preference = ("forkserver", "spawn", "fork")
    available = multiprocessing.get_all_start_methods()
    return tuple(cast("StartMethod", method) for method in preference if method in available)


def _default_start_method() -> StartMethod:
    return start_methods()[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a parallel cell is to run; times are in seconds.

    `threads` and `seed` are None where the person left them to nbshm.
    """

    nprocs: int = field(default_factory=allowed_cpus)
    start_method: StartMethod = field(default_factory=_default_start_method)
    out: tuple[str, ...] = ()
    send: tuple[str, ...] = ()
    seed: int | None = None
    threads: int | None = None
    timeout: float | None = None
    grace: float = 2.0

    @property
    def threads_per_worker(self) -> int:
        """The threads that each worker may use: its share of the CPUs, unless the person said otherwise."""
        return self.threads or max(1, allowed_cpus() // self.nprocs)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Lines to tell before the run starts."""
        cpus = allowed_cpus()
        if self.nprocs <= _CROWDED * cpus:
            return ()
        plural = "CPU" if cpus == 1 else "CPUs"
        return (
            f"nprocs={self.nprocs} is more than {_CROWDED} times the {cpus} {plural} that may be used here.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One row of the table of options.

    `read` turns the text after `=` into a value and raises ValueError for a text that is not `allowed`, a
    phrase. For a `number` people may want to give a variable; `takes_names` is of those that want names.
    `choices` are values to offer, `also_called` what people write when they mean this option.
    """

    name: str
    example: str
    default: str
    session: bool
    meaning: str
    allowed: str
    read: Callable[[str], Any]
    number: bool = False
    takes_names: bool = False
    choices: Callable[[], Sequence[str]] = tuple
    also_called: tuple[str, ...] = ()


def _whole_number(smallest: int, largest: float = math.inf) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text)
        if not smallest <= number <= largest:
            raise ValueError(text)
        return number

    return read


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < math.inf:
        raise ValueError(text)
    return seconds


def _grace(text: str) -> float:
    return 0.0 if float(text) == 0 else _seconds(text)


def _seconds_or_none(text: str) -> float | None:
    return None if text.lower() == "none" else _seconds(text)


def _start_method(text: str) -> StartMethod:
    for method in start_methods():
        if text == method:
            return method
    raise ValueError(text)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
        raise ValueError(text)
    if len(set(names)) < len(names):
        raise ValueError(text)
    return names


def _processor_counts() -> tuple[str, ...]:
    return tuple(str(count) for count in range(1, allowed_cpus() + 1))


OPTIONS: tuple[Option, ...] = (
    Option(
        name="nprocs",
        example="nprocs=4",
        default="the CPUs allowed",
        session=True,
        meaning="number of ranks: how many processes run the cell",
        allowed="a whole number of at least 1",
        read=_whole_number(1),
        number=True,
        choices=_processor_counts,
        also_called=("n", "np", "n_jobs", "jobs", "num_workers", "workers", "processes", "procs", "ranks"),
    ),
    Option(
        name="start_method",
        example="start_method=spawn",
        default="forkserver where there is one, else spawn",
        session=True,
        meaning="how the processes are started, as in multiprocessing",
        allowed=" or ".join(start_methods()),
        read=_start_method,
        choices=start_methods,
        also_called=("method", "context", "start", "mp_context"),
    ),
    Option(
        name="out",
        example="out=loss,model",
        default="none",
        session=False,
        meaning="names to bind in the notebook to lists of their values by rank",
        allowed="different names of variables, separated by commas",
        read=_names,
        takes_names=True,
        also_called=("output", "outputs", "result", "results", "returns"),
    ),
    Option(
        name="send",
        example="send=table",
        default="none",
        session=False,
        meaning="names to send that only eval, exec or globals() in the cell use",
        allowed="different names of variables, separated by commas",
        read=_names,
        takes_names=True,
        also_called=("push", "inputs", "variables"),
    ),
    Option(
        name="seed",
        example="seed=7",
        default="drawn from the notebook's generators",
        session=False,
        meaning="base seed for torch, numpy and random; rank is added",
        allowed=f"a whole number from 0 to {_LARGEST_SEED}",
        read=_whole_number(0, _LARGEST_SEED),
        number=True,
        also_called=("random_state", "random_seed"),
    ),
    Option(
        name="threads",
        example="threads=2",
        default="CPUs allowed // nprocs, at least 1",
        session=True,
        meaning="threads per worker for torch and the BLAS",
        allowed="a whole number of at least 1",
        read=_whole_number(1),
        number=True,
        choices=_processor_counts,
        also_called=("nthreads", "num_threads"),
    ),
    Option(
        name="timeout",
        example="timeout=60",
        default="none",
        session=True,
        meaning="seconds after which the run is stopped, counted from the start of its body",
        allowed="a number of seconds above 0, or none",
        read=_seconds_or_none,
        number=True,
        choices=lambda: ("60", "none"),
    ),
    Option(
        name="grace",
        example="grace=10",
        default="2",
        session=True,
        meaning="seconds that a worker which must stop has for its finally blocks",
        allowed="a number of seconds",
        read=_grace,
        number=True,
    ),
)

_BY_NAME = {option.name: option for option in OPTIONS}


def parse(line: str, defaults: Options) -> Options:
    """Read the options of one cell; what the line leaves open is as in the session's defaults."""
    return replace(defaults, **_settings(line, OPTIONS))


def parse_defaults(line: str, defaults: Options) -> Options:
    """Read new session defaults; OptionError for an option that belongs to one cell only."""
    for token in _tokens(line):
        name = token.partition("=")[0]
        if name in _BY_NAME and not _BY_NAME[name].session:
            allowed = ", ".join(option.name for option in OPTIONS if option.session)
            raise OptionError(
                f"{name} can't be a default of the session; write it after %%parallel. Defaults: {allowed}."
            )
    return replace(defaults, **_settings(line, [option for option in OPTIONS if option.session]))


def _settings(line: str, options: Iterable[Option]) -> dict[str, Any]:
    table = {option.name: option for option in options}
    settings: dict[str, Any] = {}
    for token in _tokens(line):
        option, text = _split(token, table)
        if option.name in settings:
            raise OptionError(f"{option.name} is given twice; write it once, like {option.example}.")
        settings[option.name] = _value(option, text)
    return settings


def _tokens(line: str) -> list[str]:
    """Split a line as a shell does; a comment after # is left out, `a, b` is one list."""
    try:
        return shlex.split(re.sub(r"\s*,\s*", ",", line), comments=True)
    except ValueError as problem:
        raise OptionError(f"the options can't be read: {problem}. Write key=value, like nprocs=4.") from None


def _split(token: str, table: dict[str, Option]) -> tuple[Option, str]:
    name, equals, text = token.partition("=")
    if not equals or not name:
        raise OptionError(_not_a_pair(token, table))
    if name not in table:
        raise OptionError(_unknown(name, table))
    return table[name], text


def _not_a_pair(token: str, table: dict[str, Option]) -> str:
    if token.isdecimal():
        return f"'{token}' is not key=value; did you mean nprocs={token}?"
    if token.startswith("="):
        return f"write options without spaces around '=': {OPTIONS[0].example}."
    if option := table.get(token):
        return f"{token} needs a value, without spaces around '=': {option.example}."
    return f"'{token}' is not key=value, like {OPTIONS[0].example}; the options are {', '.join(table)}."


def _unknown(name: str, table: dict[str, Option]) -> str:
    synonyms = {word: option.name for option in table.values() for word in option.also_called}
    nearest = synonyms.get(name.lower().lstrip("-")) or _nearest(name, table)
    hint = f" (did you mean {nearest}?)" if nearest else ""
    return f"unknown option '{name}'{hint}; the options are {', '.join(table)}."


def _nearest(word: str, known: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word.lower().strip("-"), list(known), n=1)), None)


def _value(option: Option, text: str) -> Any:
    if not text:
        raise OptionError(f"{option.name} needs a value: {option.allowed}, like {option.example}.")
    try:
        return option.read(text)
    except ValueError:
        raise OptionError(f"{option.name}={text}: {_remedy(option, text)}") from None


def _remedy(option: Option, text: str) -> str:
    allowed = f"{option.name} is {option.allowed}"
    if nearest := _nearest(text, option.choices()):
        return f"did you mean {nearest}? {allowed}."
    if text.startswith("{") and text.endswith("}"):
        return f"the notebook has no value for {text}; {allowed}."
    if option.number and text.isidentifier():
        return f"{allowed}; for the variable write {option.name}={{{text}}}."
    if option.number and not _is_number(text):
        return f"{allowed}; for the value of an expression write {option.name}={{{text}}}."
    return f"{allowed}."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def help_text() -> str:
    """Write the table of options for a terminal: one paragraph per option."""
    return "\n".join(
        f"    {option.example:<20} {option.meaning};\n{'':25}{option.allowed} (default: {option.default})"
        for option in OPTIONS
    )


def markdown_table() -> str:
    """Write the table of options for a README."""
    rows = [
        f"| `{option.example}` | {option.default} | {'yes' if option.session else 'no'} | {option.meaning} |"
        for option in OPTIONS
    ]
    return "\n".join(["| option | default | as session default | meaning |", "|---|---|---|---|", *rows])
