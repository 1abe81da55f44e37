"""What Tab offers after the magics: the options of `%%parallel` that are left, their values, words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from nbshm.option_table import OPTIONS, Option

_LINE = re.compile(r"^\s*(?P<magic>%%?)parallel\s+(?P<given>.*)$", re.DOTALL)
_WORDS = {"shm_status": ("clean",), "shm_strategy": ("file_descriptor", "file_system")}
_WORD = re.compile(rf"^\s*%(?P<magic>{'|'.join(_WORDS)})\s+(?P<typed>\S*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestions:
    """Texts that may replace what has been typed of the word at the cursor."""

    typed: str
    texts: tuple[str, ...]


def suggest(line: str, names: Iterable[str]) -> Suggestions | None:
    """Complete a line up to the cursor; None if it is not a line of options.

    `names` are the notebook's, to be offered where an option takes names.
    """
    match = _LINE.match(line)
    if match is None:
        return _words(line)
    options = [option for option in OPTIONS if (option.cell if match["magic"] == "%%" else option.session)]
    *given, word = re.split(r"\s+", match["given"])
    key, equals, value = word.partition("=")
    if equals:
        return _values(key, value, options, names)
    taken = {token.partition("=")[0] for token in given}
    left = [f"{option.name}=" for option in options if option.name not in taken]
    return Suggestions(typed=key, texts=_beginning_with(key, left))


def _words(line: str) -> Suggestions | None:
    match = _WORD.match(line)
    if match is None:
        return None
    return Suggestions(typed=match["typed"], texts=_beginning_with(match["typed"], _WORDS[match["magic"]]))


def _values(key: str, value: str, options: Iterable[Option], names: Iterable[str]) -> Suggestions:
    option = next((option for option in options if option.name == key), None)
    if option is None:
        return Suggestions(typed=value, texts=())
    if option.takes_names:
        *chosen, typed = value.split(",")
        free = sorted(name for name in names if not name.startswith("_") and name not in chosen)
        return Suggestions(typed=typed, texts=_beginning_with(typed, free))
    return Suggestions(typed=value, texts=_beginning_with(value, option.choices()))


def _beginning_with(typed: str, texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(text for text in texts if text.startswith(typed))
