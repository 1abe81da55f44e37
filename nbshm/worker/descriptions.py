"""The values of names in frames, described in short, whatever their reprs do.

A repr may raise, be as big as the value, or take for ever; the failure has to be told all the same. So reprs
run in a thread that is waited for only so long, and containers are cut before they are written.
"""

from __future__ import annotations

import inspect
import itertools
import re
import reprlib
import threading
import time
import types
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from nbshm.failures.frames import Values

SECONDS = 0.3
"""How long all values of a traceback may take to be described."""

TOO_SLOW = "..."
_MOST_FRAMES = 20
_MOST_NAMES = 12
_LONGEST = 160  # characters of one value
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_NO_NEWS = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)
_NOTHING = object()


class Describer:
    """Describes the names of one failure's frames, until the time for it is over."""

    def __init__(self) -> None:
        self._until = time.monotonic() + SECONDS

    def __call__(self, frames: Sequence[FrameType]) -> list[Values]:
        """Describe the names of the innermost frames; what there is no time for is left out."""
        described: list[list[tuple[str, str]]] = [[] for _ in frames]
        left = self._until - time.monotonic()
        if frames and left > 0:
            thread = threading.Thread(target=_describe, args=(frames, described), daemon=True)
            thread.start()
            thread.join(left)
        return [tuple(values) for values in described]


def describe(value: Any) -> str:
    """Describe one value on a line."""
    try:
        text = f"{_shape(value)}{_short.repr(value)}"
    except BaseException as error:  # noqa: BLE001  # a foreign __repr__ does what it likes, in a thread of its own
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    line = _ADDRESS.sub("", " ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


def _describe(frames: Sequence[FrameType], described: list[list[tuple[str, str]]]) -> None:
    for frame, values in list(zip(frames, described, strict=True))[: -_MOST_FRAMES - 1 : -1]:
        for name, value in itertools.islice(_names(frame), _MOST_NAMES):
            values.append((name, TOO_SLOW))
            values[-1] = name, describe(value)


def _names(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """Yield the names that a frame's code uses, and what they are; definitions and modules are no news."""
    code, values = frame.f_code, frame.f_locals
    is_function = code.co_flags & inspect.CO_OPTIMIZED
    names = (*code.co_varnames, *code.co_cellvars) if is_function else code.co_names
    for name in dict.fromkeys((*names, *code.co_freevars)):
        value = _NOTHING if name.startswith("_") else _value(values, name)
        if value is not _NOTHING and not issubclass(type(value), _NO_NEWS):
            yield name, value


def _value(values: Any, name: str) -> Any:
    """Look a name up as its code does: the locals of an `eval` may be any mapping."""
    try:
        return dict.get(values, name, _NOTHING) if isinstance(values, dict) else values[name]
    except BaseException:  # noqa: BLE001  # foreign code, in a thread of its own, as a __repr__
        return _NOTHING


def _shape(value: Any) -> str:
    """Say how big an array or a tensor is, which its repr does not."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    return "" if shape is None or dtype is None else f"{tuple(shape)} {dtype} "


class _Short(reprlib.Repr):
    """reprlib's, which cuts containers first, and lets no other container write itself whole."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = _LONGEST
        self.maxlong = 60

    def repr_instance(self, x: Any, level: int) -> str:
        """Write what reprlib has no own way for."""
        del level
        kind = type(x)  # not `isinstance`: a proxy's __class__ is foreign code
        if issubclass(kind, (bytes, bytearray)):
            return repr(x[:_LONGEST])
        if issubclass(kind, (str, list, tuple, dict, set, frozenset)) and len(x) > _LONGEST:
            return f"<{kind.__name__} of {len(x)}>"
        return repr(x)


_short = _Short()
