"""The table of the options of a parallel cell: what each means, what it may be, and what people call it."""

from __future__ import annotations

import keyword
import math
import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from nbshm.given_names import GIVEN_NAMES, IPYTHON_NAMES
from nbshm.machine.cpus import allowed_cpus

StartMethod: TypeAlias = Literal["forkserver", "spawn", "fork"]

_LARGEST_SEED = 2**32 - 1  # numpy takes no larger one
_MOST_RANKS = 1024  # each takes a process, descriptors and memory; more is a slip of the keyboard


def start_methods() -> tuple[StartMethod, ...]:
    """Return the start methods of this platform, the default one first."""
    preference = ("forkserver", "spawn", "fork")
    available = multiprocessing.get_all_start_methods()
    return tuple(cast("StartMethod", method) for method in preference if method in available)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One row of the table of options.

    `read` turns the text after `=` into a value and raises ValueError for a text that is not `allowed`, a
    phrase. It is for a `cell`, for the `session` as its default, or for both. For a `number` people may want
    to give a variable; `takes_names` is of those that want names. `choices` are values to offer,
    `also_called` what people write when they mean this option.
    """

    name: str
    example: str
    default: str
    session: bool
    meaning: str
    allowed: str
    read: Callable[[str], Any]
    cell: bool = True
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


def _standby(text: str) -> int | None:
    return None if text.lower() == "auto" else _whole_number(0, _MOST_RANKS)(text)


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
    if not (GIVEN_NAMES | IPYTHON_NAMES).isdisjoint(names):
        raise ValueError(text)
    if len(set(names)) < len(names):
        raise ValueError(text)
    return names


def _name(text: str) -> str:
    (name,) = _names(text)
    return name


def _processor_counts() -> tuple[str, ...]:
    return tuple(str(count) for count in range(1, allowed_cpus() + 1))


OPTIONS: tuple[Option, ...] = (
    Option(
        name="nprocs",
        example="nprocs=4",
        default="the CPUs allowed",
        session=True,
        meaning="number of ranks: how many processes run the cell",
        allowed=f"a whole number from 1 to {_MOST_RANKS}",
        read=_whole_number(1, _MOST_RANKS),
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
        allowed="different names of variables (no keywords), separated by commas",
        read=_names,
        takes_names=True,
        also_called=("output", "outputs", "result", "results", "returns"),
    ),
    Option(
        name="send",
        example="send=table",
        default="none",
        session=False,
        meaning="names to send that only eval, exec, globals() or a text (a query, a formula) uses",
        allowed="different names of variables (no keywords), separated by commas",
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
        meaning="threads per worker for torch, the BLAS, polars and OpenCV",
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
    Option(
        name="background",
        example="background=job",
        default="none",
        session=False,
        meaning="name to bind to the running job; the cell ends at once",
        allowed="the name of a variable: no keyword, and neither the cell's own (rank) nor IPython's (Out)",
        read=_name,
        also_called=("bg", "job", "detach", "asynchronous", "async", "nowait"),
    ),
    Option(
        name="standby",
        example="standby=4",
        default="as many as the last run had ranks",
        session=True,
        meaning="processes kept ready for the next run (forkserver), each for one run",
        allowed=f"a whole number from 0 to {_MOST_RANKS}, or auto",
        read=_standby,
        cell=False,
        number=True,
        choices=lambda: ("0", "auto"),
    ),
)


def help_text() -> str:
    """Write the table of options for a terminal: one paragraph per option."""
    return "\n".join(
        f"    {option.example:<20} {option.meaning};\n{'':25}{option.allowed} (default: {option.default})"
        for option in OPTIONS
    )


def markdown_table() -> str:
    """Write the table of options for a README."""
    rows = [
        f"| `{option.example}` | {option.default} | {_session_in_words(option)} | {option.meaning} |"
        for option in OPTIONS
    ]
    return "\n".join(["| option | default | as session default | meaning |", "|---|---|---|---|", *rows])


def _session_in_words(option: Option) -> str:
    if not option.session:
        return "no"
    return "yes" if option.cell else "yes (only)"
