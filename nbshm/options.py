"""The options of a parallel cell: `nprocs=4 start_method=spawn out=losses` as checked, frozen `Options`."""

from __future__ import annotations

import ast
import difflib
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from nbshm.machine.cpus import allowed_cpus
from nbshm.option_table import OPTIONS, Option, StartMethod, start_methods

_CROWDED = 4  # times the CPUs: ranks that compute then mostly wait for each other


class OptionError(ValueError):
    """A line of options is wrong; the message says in one line what, and what is right."""


def _default_start_method() -> StartMethod:
    return start_methods()[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a parallel cell is to run; times are in seconds.

    `threads`, `seed` and `standby` are None where the person left them to nbshm.
    """

    nprocs: int = field(default_factory=allowed_cpus)
    start_method: StartMethod = field(default_factory=_default_start_method)
    out: tuple[str, ...] = ()
    send: tuple[str, ...] = ()
    seed: int | None = None
    threads: int | None = None
    timeout: float | None = None
    grace: float = 2.0
    background: str | None = None
    standby: int | None = None

    @property
    def threads_per_worker(self) -> int:
        """The threads that each worker may use: its share of the CPUs, unless the person said otherwise."""
        return self.threads or max(1, allowed_cpus() // self.nprocs)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Lines to tell before the run starts."""
        if self.nprocs <= _CROWDED:  # whatever CPUs there are; to count them means to read files
            return ()
        cpus = allowed_cpus()
        if self.nprocs <= _CROWDED * cpus:
            return ()
        plural = "CPU" if cpus == 1 else "CPUs"
        return (
            f"nprocs={self.nprocs} is more than {_CROWDED} times the {cpus} {plural} that may be used here.",
        )


_BY_NAME = {option.name: option for option in OPTIONS}


def parse(line: str, defaults: Options) -> Options:
    """Read the options of one cell; what the line leaves open is as in the session's defaults."""
    for option in _named(line):
        if not option.cell:
            raise OptionError(
                f"{option.name} is a default of the session; set it in a line of its own: "
                f"%parallel {option.example}."
            )
    options = replace(defaults, **_settings(line, [option for option in OPTIONS if option.cell]))
    if options.background in options.out:
        raise OptionError(
            f"{options.background!r} can't be bound to both the job (background=) and results (out=); "
            f"use two names."
        )
    return options


def parse_defaults(line: str) -> dict[str, Any]:
    """Read new session defaults, by name; OptionError for an option that belongs to one cell only."""
    for option in _named(line):
        if not option.session:
            allowed = ", ".join(option.name for option in OPTIONS if option.session)
            raise OptionError(
                f"{option.name} can't be a default of the session; write it after %%parallel. "
                f"Defaults: {allowed}."
            )
    return _settings(line, [option for option in OPTIONS if option.session])


def _named(line: str) -> Iterator[Option]:
    """Yield the options whose names stand in the line."""
    names = [token.partition("=")[0] for token in _tokens(line)]
    return (_BY_NAME[name] for name in names if name in _BY_NAME)


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
        value, comma, following = _before_another_option(text)
        if comma:
            raise OptionError(
                f"{option.name}={value}: write a space, not a comma, between it and {following}."
            ) from None
        raise OptionError(f"{option.name}={text}: {_remedy(option, text)}") from None


def _before_another_option(text: str) -> tuple[str, str, str]:
    """Split a value that a comma and another option follow into these three; else it is all value."""
    for found in re.finditer(r",(\w+)=", text):
        if found[1] in _BY_NAME:
            return text[: found.start()], ",", f"{found[1]}="
    return text, "", ""


def _remedy(option: Option, text: str) -> str:
    allowed = f"{option.name} is {option.allowed}"
    if nearest := _nearest(text, option.choices()):
        return f"did you mean {nearest}? {allowed}."
    if text.startswith("{") and text.endswith("}"):
        return f"the notebook has no value for {text}; {allowed}."
    if option.number and text.isidentifier():
        return f"{allowed}; for the variable write {option.name}={{{text}}}."
    if option.number and _is_expression(text):
        return f"{allowed}; for the value of an expression write {option.name}={{{text}}}."
    return f"{allowed}."


def _is_expression(text: str) -> bool:
    """Tell whether a text is an expression of Python, and neither a number nor several of anything."""
    try:
        expression = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return False
    return not isinstance(expression, ast.Tuple) and not _is_number(text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
