"""Arrays that are shared to start with."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from nbshm.errors import NoRoom
from nbshm.machine.descriptor_limit import can_open
from nbshm.memory.shared import limits
from nbshm.memory.shared.segments import Segment

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Shape: TypeAlias = int | Sequence[int]
Order: TypeAlias = Literal["C", "F"]

_FEW = 32
"""Descriptors: with less the kernel itself can't do much. An array has one."""


def new_array(shape: Shape, dtype: Any, order: Order, *, name: str, make: Callable[[int], Segment]) -> Array:
    """Return an array over a segment that `make` makes of as many bytes as it needs; `name` is for errors."""
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(f"{name}: an array of dtype {kind} holds references, which processes can't share.")
    lengths = tuple(map(operator.index, shape)) if isinstance(shape, Sequence) else (operator.index(shape),)
    nbytes = math.prod(lengths) * kind.itemsize
    if nbytes <= 0:
        return np.zeros(lengths, kind, order)
    _check_room(nbytes, name)
    _check_descriptors(nbytes, name)
    segment = make(nbytes)
    segment.stay_shared()
    buffer: Any = segment.buffer  # numpy's annotations know few kinds of buffers
    array: Array = np.ndarray(lengths, kind, buffer=buffer, order=order)
    return array


def _check_room(nbytes: int, name: str) -> None:
    for room in (limits.largest_file(), limits.memory_left(), limits.addresses_left()):
        if room is not None and nbytes > room.nbytes:
            raise NoRoom(
                what=f"the array of {name}()",
                needed=nbytes,
                available=room.nbytes,
                where=room.where,
                remedy=room.remedy,
            )


def _check_descriptors(nbytes: int, name: str) -> None:
    if not can_open(_FEW):
        raise NoRoom(
            what=f"the array of {name}()",
            needed=nbytes,
            available=0,
            where="the files that this process may open (RLIMIT_NOFILE)",
            remedy="Raise the limit (ulimit -n) before Jupyter is started, or make fewer, bigger arrays.",
        )
