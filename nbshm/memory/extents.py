"""Where memory lies: ranges of addresses, and that of an array from its address, shape and strides alone."""

from __future__ import annotations

from typing import Any, TypeAlias

Range: TypeAlias = tuple[int, int]
"""Where memory begins, and where it ends."""


def address_of_first(array: Any) -> int:
    """Return the address of an array's first element."""
    return int(array.__array_interface__["data"][0])


def extent(array: Any) -> tuple[int, int]:
    """Return the lowest address of an array's elements, and the bytes from there to the end of the last."""
    first = address_of_first(array)
    if array.nbytes == 0:
        return first, 0
    reach = [(length - 1) * stride for length, stride in zip(array.shape, array.strides, strict=True)]
    below = sum(distance for distance in reach if distance < 0)
    above = sum(distance for distance in reach if distance > 0)
    return first + below, above - below + int(array.itemsize)
