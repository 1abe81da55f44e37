"""Descriptors 0, 1 and 2 of a worker: nothing to read, and two pipes to the kernel that lose nothing.

`sys.stdout` and `sys.stderr` write straight to the descriptor: what was printed before a SIGKILL has been
printed.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING

from nbshm.worker.printing import replace_print

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class WholeWrites(io.FileIO):
    """A file whose `write` returns when everything is written: a signal may cut the system call short."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all of it."""
        rest = memoryview(data).cast("B")
        total = len(rest)
        while rest:
            rest = rest[super().write(rest) :]
        return total


def redirect(stdout: int, stderr: int) -> None:
    """Let descriptors 1 and 2 be these pipes, 0 the empty file; the given descriptors are closed."""
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123  # a descriptor is wanted, not a path
        os.dup2(nothing.fileno(), 0)
    _move(stdout, 1)
    _move(stderr, 2)
    sys.stdout = sys.__stdout__ = _text(1)  # type: ignore[misc]  # a process's own streams are replaced once
    replace_print(sys.stdout)
    sys.stderr = sys.__stderr__ = _text(2)  # type: ignore[misc]


def flush() -> None:
    """Write out what a replaced `sys.stdout` or `sys.stderr` still holds."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _move(fd: int, to: int) -> None:
    os.dup2(fd, to)
    if fd != to:
        os.close(fd)


def _text(fd: int) -> io.TextIOWrapper:
    raw = WholeWrites(fd, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)
