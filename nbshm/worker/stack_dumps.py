"""The stacks of threads as text, as `faulthandler` writes them, but with all frames.

`faulthandler` stops after a hundred. In the middle of an import, of a recursion, or of what a big library
calls, that leaves out the very lines of cells that have led there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType

_AT_EACH_END = 1000
"""Frames that are written at each end of a stack: with the recursion limit raised there may be any number."""


def dump_of(stacks: Mapping[int, FrameType]) -> str:
    """Write the stacks of threads, given by their idents and innermost frames."""
    return "\n".join(_stack(ident, frame) for ident, frame in stacks.items())


def _stack(ident: int, innermost: FrameType) -> str:
    lines = list(_lines(innermost))
    if len(lines) > 2 * _AT_EACH_END:
        lines = [*lines[:_AT_EACH_END], "  ...", *lines[-_AT_EACH_END:]]
    return "\n".join([f"Thread 0x{ident:016x} (most recent call first):", *lines, ""])


def _lines(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        code = frame.f_code
        yield f'  File "{code.co_filename}", line {frame.f_lineno or 0} in {code.co_name}'
        frame = frame.f_back
