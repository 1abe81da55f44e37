"""Ranks, places, times and sizes as a person reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SHORTEST_RUN = 3  # "0, 1, 3" reads better than "0-1, 3"
_BINARY_STEP = 1024
_MINUTE = 60
_HOUR = 3600
_TENTHS_BELOW = 10
_MANY = 100_000
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_PREFIXES = {3: "k", 6: "M", 9: "G", 12: "T"}


def printable(text: str) -> str:
    """Write halves of surrogate pairs, which no encoding has and no front end takes, as escapes."""
    return text.encode(errors="backslashreplace").decode()


def without_colours(text: str) -> str:
    """Take ANSI escape sequences out of a text."""
    return _ANSI.sub("", text)


def numbers_in_words(numbers: Iterable[int]) -> str:
    """Write numbers compactly: `0-3, 7`; two neighbours are joined only where they are all there is."""
    runs = _runs(sorted(set(numbers)))
    if len(runs) == 1 and len(runs[0]) > 1:
        return f"{runs[0][0]}-{runs[0][-1]}"
    return ", ".join(
        f"{run[0]}-{run[-1]}" if len(run) >= _SHORTEST_RUN else ", ".join(map(str, run)) for run in runs
    )


def ranks_in_words(ranks: Iterable[int]) -> str:
    """Name ranks: `rank 2`, or `ranks 0-3, 7`."""
    distinct = set(ranks)
    return f"{'rank' if len(distinct) == 1 else 'ranks'} {numbers_in_words(distinct)}"


def line_in_words(line: int, cell: int | None) -> str:
    """Say where a line of a cell is: `In [3] line 7`; `line 7` where the cell has no number."""
    return f"line {line}" if cell is None else f"In [{cell}] line {line}"


def verb_for(ranks: Sequence[int], singular: str, plural: str) -> str:
    """Choose the verb's form for that many ranks."""
    return singular if len(ranks) == 1 else plural


def seconds_in_words(seconds: float) -> str:
    """Write a duration: `0.4 s`, `41 s`, `2 min 5 s`, `3 h 10 min`."""
    whole = round(seconds)
    if seconds < _TENTHS_BELOW:
        return f"{seconds:.1f} s"
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def bytes_in_words(nbytes: int) -> str:
    """Write a size in binary units: `512 bytes`, `1.5 GiB`."""
    if nbytes < _BINARY_STEP:
        return f"{nbytes} bytes"
    size = float(nbytes)
    units = iter(("KiB", "MiB", "GiB", "TiB"))
    unit = ""
    while size >= _BINARY_STEP and (larger := next(units, None)):
        size, unit = size / _BINARY_STEP, larger
    return f"{size:.1f} {unit}"


def size_in_words(nbytes: int) -> str:
    """Write a size in a narrow column: `512 B`, `31 MiB`, `1.5 GiB`."""
    if nbytes < _BINARY_STEP:
        return f"{nbytes} B"
    number, unit = bytes_in_words(nbytes).split()
    return f"{number if unit in ('GiB', 'TiB') else round(float(number))} {unit}"


def percent_in_words(fraction: float) -> str:
    """Write a share: `61 %`."""
    return f"{int(100 * fraction)} %"


def progress_in_words(label: str, done: float, total: float | None) -> str:
    """Say how far a loop has come: `fits 30/100`."""
    of = "" if total is None else f"/{number_in_words(total)}"
    return f"{label} {number_in_words(done)}{of}".lstrip()


def number_in_words(number: float) -> str:
    """Write a count with at most five digits: `12345`, `1.23 M`."""
    if abs(number) < _MANY:
        return f"{number:.4g}" if isinstance(number, float) and number != int(number) else f"{int(number)}"
    exponent = next(power for power in (12, 9, 6, 3) if abs(number) >= 10**power)
    return f"{number / 10**exponent:.3g} {_PREFIXES[exponent]}"


def listed(names: Sequence[str], most: int = 3) -> str:
    """List names, the first few of many: `a, b and c`, or `a, b, c and 4 more`."""
    shown = list(names[:most])
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return " and ".join([*([", ".join(shown[:-1])] if shown[:-1] else []), shown[-1]]) if shown else ""


def with_article(noun: str) -> str:
    """Put `a` or `an` before a noun."""
    return f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"


def _runs(ordered: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in ordered:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs
