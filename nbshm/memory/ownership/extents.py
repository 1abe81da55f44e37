"""Where memory lies: that of an array, from its address, shape and strides alone, and that of a tensor."""

from __future__ import annotations

import bisect
import contextlib
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

Range: TypeAlias = tuple[int, int]
"""Where memory begins, and where it ends."""

_CPU = frozenset({"cpu"})
_ADDRESSED = frozenset({"cpu", "cuda"})  # CUDA gives no address that the CPU has


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


def memory_span(value: Any) -> tuple[int, int] | None:
    """Return address and size of the memory of an array, or of the storage of a tensor on the CPU."""
    return _span(value, _CPU)


def address_span(value: Any) -> tuple[int, int] | None:
    """Return address and size of the memory of an array, or of the storage of a tensor, on a GPU too."""
    return _span(value, _ADDRESSED)


def overlapped(ranges: Sequence[Range], value: Any) -> Iterator[Range]:
    """Yield the ranges, of those in order, that the memory of a value overlaps."""
    span = address_span(value)
    if span is not None:
        address, nbytes = span
        first = bisect.bisect_right(ranges, address, key=lambda each: each[1])
        for begin, end in itertools.islice(ranges, first, None):
            if begin >= address + nbytes:
                return
            yield begin, end


def _span(value: Any, devices: frozenset[str]) -> tuple[int, int] | None:
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and issubclass(type(value), numpy.ndarray):
        return extent(value)
    if torch is not None and issubclass(type(value), torch.Tensor) and torch._C._has_storage(value):  # noqa: SLF001  # sparse tensors have none
        with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001  # a class must not see that it is looked at
            storage = value.untyped_storage()
        with contextlib.suppress(RuntimeError):  # that of a tensor which stands for others has no address
            return (storage.data_ptr(), storage.nbytes()) if storage.device.type in devices else None
    return None
