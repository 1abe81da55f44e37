"""`print` in a worker: a call with plain values is one write, where Python's own makes one for each piece.

`sys.stdout` holds nothing back in a worker, so that a rank's last words are not lost; written piece by piece,
the four system calls of `print("step", n)` would cost more than what many a loop does between two lines.
"""

from __future__ import annotations

import builtins
import io
import sys
from collections.abc import Callable
from typing import Any

_PLAIN = frozenset({str, int, float, bool, type(None)})  # what writes nothing itself while it is written


def replace_print(stream: io.TextIOBase) -> None:
    """Have `print` write at once what goes to this stream as the process's `sys.stdout`."""
    original = builtins.print
    write_at_once = _one_write(original, stream)
    # As far as pickle and help() are concerned it is Python's.
    write_at_once.__module__, write_at_once.__name__ = "builtins", "print"
    write_at_once.__qualname__, write_at_once.__doc__ = "print", original.__doc__
    builtins.print = write_at_once


def _one_write(original: Callable[..., None], stream: io.TextIOBase) -> Any:
    def print_at_once(
        *values: object,
        sep: str | None = " ",
        end: str | None = "\n",
        file: Any = None,
        flush: bool = False,
    ) -> None:
        whole = file is None and sys.stdout is stream and _PLAIN.issuperset(map(type, values))
        if not whole or type(sep) is not str or type(end) is not str:
            original(*values, sep=sep, end=end, file=file, flush=flush)
        else:
            stream.write(sep.join(map(str, values)) + end)

    return print_at_once
