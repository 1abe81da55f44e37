"""An exception as IPython shows it in a notebook, with causes and members, without nbshm's own frames.

IPython's formatters do one exception each; what they leave to Python (groups) or do themselves (chains) is
done here, so that a group in a chain, or a chain in a group, looks like everything else.
"""

# IPython is typed in part:
# mypy: allow-untyped-calls

from __future__ import annotations

import contextlib
import inspect
import linecache
import os
import traceback
from collections.abc import Iterator
from types import CodeType, FrameType, ModuleType
from typing import Any

import IPython
from IPython.core import ultratb
from IPython.core.error import UsageError
from IPython.core.ultratb import AutoFormattedTB, ListTB, SyntaxTB

from nbshm.failures.chains import DEEPEST_GROUP, MOST_MEMBERS, chain, members, trim
from nbshm.failures.tracebacks import render_plainly
from nbshm.own_code import OWN_DIRECTORY
from nbshm.replacing import replaced

_IPYTHON_DIRECTORY = os.path.join(os.path.dirname(IPython.__file__), "")  # noqa: PTH118, PTH120  # as co_filename is
_HIDDEN = (OWN_DIRECTORY, _IPYTHON_DIRECTORY)
_DIRECT = "The above exception was the direct cause of the following exception:"
_DURING = "During handling of the above exception, another exception occurred:"


def _cells_have_lines() -> contextlib.AbstractContextManager[None]:
    """Have IPython look for a cell's lines where they are, not on disk, while this is entered.

    IPython 9 counts the lines of a file first, and shows code of a file that it can't open (every cell of an
    ipykernel) without the highlighted expression, and a runaway recursion frame by frame. There is no way to
    tell it otherwise; earlier versions have no such function.
    """
    return replaced(ultratb, "get_line_number_of_frame", _count_lines)


def _count_lines(frame: FrameType) -> int:
    return len(linecache.getlines(frame.f_code.co_filename, frame.f_globals))


def _modules_are_remembered() -> contextlib.AbstractContextManager[None]:
    """Have IPython find the module of a piece of code once, while this is entered.

    It asks for each frame, of a runaway recursion a thousand times, and each time all modules are looked at
    to learn that a cell is in none of them: seconds.
    """
    look, found = inspect.getmodule, dict[CodeType, ModuleType | None]()

    def module_of(value: Any, _filename: str | None = None) -> ModuleType | None:
        if not isinstance(value, FrameType) or _filename is not None:
            return look(value, _filename)
        if value.f_code not in found:
            found[value.f_code] = look(value)
        return found[value.f_code]

    return replaced(inspect, "getmodule", module_of)


def _one_at_a_time(formatter: ListTB) -> contextlib.AbstractContextManager[None]:
    """Have a formatter show one exception without those that it was raised from, while this is entered."""
    return replaced(formatter, "get_parts_of_chained_exception", lambda _: None)


class Renderer:
    """Renders exceptions with a shell's formatters: one for syntax errors, one for all others."""

    def __init__(self, ordinary: AutoFormattedTB, syntax: SyntaxTB) -> None:
        self._ordinary = ordinary
        self._syntax = syntax

    def render(self, exception: BaseException) -> str:
        """Render an exception as the notebook shows it; its own frames are trimmed on the way.

        Never fails: what IPython's formatters can't do, Python's own do plainly.
        """
        trim(exception, _HIDDEN)
        try:
            with (
                _cells_have_lines(),
                _modules_are_remembered(),
                _one_at_a_time(self._ordinary),
                _one_at_a_time(self._syntax),
            ):
                return self._chained(exception, depth=0)
        except Exception:  # noqa: BLE001  # foreign __str__, __notes__, source files that vanished: tell it all the same
            return render_plainly(exception)

    def _chained(self, exception: BaseException, *, depth: int) -> str:
        links = chain(exception)
        parts = [self._whole(links[-1], depth)]
        for above, below in zip(reversed(links[1:]), reversed(links[:-1]), strict=True):
            parts.append(_DIRECT if below.__cause__ is above else _DURING)
            parts.append(self._whole(below, depth))
        return "\n\n".join(part.strip("\n") for part in parts) + "\n"

    def _whole(self, exception: BaseException, depth: int) -> str:
        return "\n".join([self._one(exception).strip("\n"), *self._members(exception, depth)])

    def _one(self, exception: BaseException) -> str:
        kind, links = type(exception), exception.__traceback__
        if kind is UsageError:
            return f"UsageError: {exception}"
        if hasattr(exception, "_render_traceback_"):  # IPython's hook for exceptions that know better
            return "\n".join(exception._render_traceback_())
        if isinstance(exception, SyntaxError):
            frames: Any = traceback.extract_tb(links)  # what its own docstring asks for
            return self._syntax.stb2text(self._syntax.structured_traceback(kind, exception, frames))
        if links is None:
            return "".join(self._ordinary.get_exception_only(kind, exception))
        return self._ordinary.stb2text(
            self._ordinary.structured_traceback(kind, exception, links, tb_offset=0)
        )

    def _members(self, exception: BaseException, depth: int) -> Iterator[str]:
        found = members(exception)
        if found and depth >= DEEPEST_GROUP:
            yield f"  ... and groups in it deeper than {DEEPEST_GROUP}"
            return
        for number, member in enumerate(found[:MOST_MEMBERS], start=1):
            yield f"  {'+-+' if number == 1 else '  +'}---------------- {number} ----------------"
            for line in self._chained(member, depth=depth + 1).splitlines():
                yield f"    | {line}"
        if len(found) > MOST_MEMBERS:
            yield "    +---------------- ... ----------------"
            yield f"    | and {len(found) - MOST_MEMBERS} more exceptions"
        if found:
            yield "    +------------------------------------"
