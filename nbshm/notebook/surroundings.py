"""What surrounds the notebook's code: directory, environment, locale, filters, levels, libraries, seeds.

The kernel captures it when a cell starts; each worker takes it over (`nbshm.worker.surroundings`), so that
the same code does the same there. Nothing is imported to capture it.
"""

from __future__ import annotations

import locale
import logging
import multiprocessing
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from nbshm.attributes import followed
from nbshm.import_path import absolute
from nbshm.notebook.libraries import read_libraries
from nbshm.notebook.located_modules import Location, located_modules
from nbshm.notebook.seeds import Seeds, draw_seeds
from nbshm.options import OptionError


class WarningFilter(NamedTuple):
    """One of Python's warning filters; the category by name, so that it can be told before it is imported."""

    action: str
    message: str
    category: tuple[str, str]
    module: str
    line: int


class LogLevel(NamedTuple):
    """What a logger has been set to, the root as "".

    `home` is the module of its class, which then has to make it, if that is not logging's or the notebook's.
    """

    logger: str
    level: int
    home: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The notebook's surroundings as they were when the cell started, the same for all ranks.

    `umask` and `cpus` (those that the process may run on) are None where the system does not tell. `digits`
    are those that an integer's text may have, None where Python has no limit for them yet. `argv`,
    `authkey` and `start_method` (None if open yet) are what multiprocessing gives to children. `located` are
    modules that importing their names would not find. `threads` is for torch and the BLAS in each worker,
    None to leave them as they are. `port` is free for the rendezvous of `torch.distributed`. `handled` are
    the loggers with handlers, which stay in the notebook.
    """

    directory: str | None
    umask: int | None
    cpus: frozenset[int] | None
    argv: tuple[str, ...]
    authkey: bytes
    start_method: str | None
    path: tuple[str, ...]
    located: dict[str, Location]
    environment: dict[str, str]
    locale: str
    recursion_limit: int
    digits: int | None
    warning_filters: tuple[WarningFilter, ...]
    log_levels: tuple[LogLevel, ...]
    handled: frozenset[str]
    libraries: dict[str, bytes]
    seeds: Seeds
    threads: int | None
    port: int


def capture_surroundings(*, threads: int | None, share: int, seed: int | None, port: int) -> Surroundings:
    """Capture the notebook's surroundings; draws once from each random generator, unless a seed is given.

    `threads` is what the person asked for, `share` what each worker may have where nobody asked.
    """
    loggers = _loggers()
    return Surroundings(
        directory=_directory(),
        umask=_umask(),
        cpus=frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        argv=tuple(sys.argv),
        authkey=bytes(multiprocessing.current_process().authkey),
        start_method=multiprocessing.get_start_method(allow_none=True),
        path=tuple(_path()),
        located=located_modules(),
        environment=dict(os.environ),
        locale=locale.setlocale(locale.LC_ALL),  # without a second argument it only tells
        recursion_limit=sys.getrecursionlimit(),
        digits=sys.get_int_max_str_digits() if hasattr(sys, "get_int_max_str_digits") else None,
        warning_filters=tuple(_warning_filters()),
        log_levels=tuple(_log_levels(loggers)),
        handled=frozenset(name for name, logger in loggers.items() if _is_handled(logger)),
        libraries=read_libraries(),
        seeds=draw_seeds(seed),
        threads=threads_per_worker(threads, share, os.environ),
        port=port,
    )


def _loggers() -> dict[str, logging.Logger]:
    """Return the loggers that there are by name, the root as ""; some names are only places for one."""
    named = list(logging.Logger.manager.loggerDict.items())
    loggers = {name: logger for name, logger in named if isinstance(logger, logging.Logger)}
    return {"": logging.getLogger(), **loggers}


def _log_levels(loggers: Mapping[str, logging.Logger]) -> Iterator[LogLevel]:
    for name, logger in loggers.items():
        if logger.level or not name:
            home = type(logger).__module__
            yield LogLevel(name, logger.level, None if home in {"logging", "__main__"} else home)


def _is_handled(logger: logging.Logger) -> bool:
    return not all(isinstance(handler, logging.NullHandler) for handler in logger.handlers)


def threads_per_worker(asked: int | None, share: int, environment: Mapping[str, str]) -> int | None:
    """Choose: what was asked for, else the person's own OMP_NUM_THREADS, else the share.

    None for an OMP_NUM_THREADS that is no number (`4,2` is valid): the libraries read that themselves.
    """
    if asked is not None:
        return asked
    own = environment.get("OMP_NUM_THREADS")
    if own is None:
        return share
    return int(own) if own.isdecimal() and int(own) > 0 else None


def check_directory() -> None:
    """Raise OptionError where there is no working directory for workers to be in."""
    if _directory() is None:
        raise OptionError("the notebook's working directory is gone. Go to another one: %cd DIRECTORY.")


def _directory() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109  # a string is what travels
    except FileNotFoundError:  # it was removed; a worker then stays where it started
        return None


def _path() -> Iterator[str]:
    """Yield the entries of `sys.path`; workers are in the notebook's directory, which the empty one means."""
    for entry in sys.path:
        yield absolute(entry) if entry else entry


def _umask() -> int | None:
    """Read the mask for new files where it need not be set for that, which other threads would see."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"^Umask:\s*([0-7]+)$", status, re.MULTILINE)
    return int(found[1], 8) if found else None


def _warning_filters() -> Iterator[WarningFilter]:
    """Read Python's filters, but not for categories that a worker can't look up."""
    for action, message, category, module, line in warnings.filters:
        assert isinstance(category, type)  # noqa: S101  # the stubs allow more than `filterwarnings` does
        module_name, name = category.__module__, category.__qualname__
        found = followed(sys.modules.get(module_name), name.split("."))
        if module_name != "__main__" and found is category:
            yield WarningFilter(
                action=action,
                message=_expression(message),
                category=(module_name, name),
                module=_expression(module),
                line=line,
            )


def _expression(pattern: re.Pattern[str] | str | None) -> str:
    """Write what a filter holds as a regular expression: it may be a plain text (Python's own), or None."""
    if isinstance(pattern, re.Pattern):
        return pattern.pattern
    return "" if pattern is None else rf"{re.escape(pattern)}\Z"
