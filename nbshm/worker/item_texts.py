"""Items of a loop in texts by which ranks tell whether they have the same ones.

A text is the same in each process that has the item. Nothing of an item's own runs for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import islice
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from types import NoneType
from typing import Any

from nbshm.memory.ownership.bases import root
from nbshm.memory.ownership.kinds import is_array

_ITEMS = 16  # of a container are looked at
_NUMBERS = 64  # of an array are looked at
_CHARACTERS = 1000
_BITS = 1000
_DEPTH = 3
_CONSTANTS = frozenset({NoneType, bool})
_PATHS = frozenset({PurePosixPath, PureWindowsPath, PosixPath, WindowsPath})
_CONTAINERS = frozenset({list, tuple, dict})
_UNKNOWN = "..."
_EXACT = frozenset("biuUS")
_KINDS_OF_ARRAYS = _EXACT | {"f", "c"}


def text_of(item: Any, depth: int = _DEPTH) -> str | None:
    """Return an item as a text; None if it can't be told from others.

    That is so for objects that are neither built-in nor arrays, and for memory that may be the ranks' own in
    common: another rank may have written into an item of it.
    """
    kind = type(item)
    if kind in _CONSTANTS or (kind is int and item.bit_length() <= _BITS):
        return repr(item)
    if kind in {float, complex}:
        return f"{item:.6g}"  # what each rank computes for itself may differ in the last bits
    if kind in {str, bytes}:
        return repr(item[:_CHARACTERS])
    if kind in _PATHS:
        return repr(str(item))
    if kind in _CONTAINERS and depth:
        return _text_of_container(item, depth - 1)
    return _text_of_numbers(item)


def can_change(item: Any, depth: int = _DEPTH) -> bool:
    """Tell whether an item may have another text after a rank has worked at it, or at what leads to it."""
    if type(item) is tuple:
        return depth > 0 and any(can_change(part, depth - 1) for part in item[:_ITEMS])
    return type(item) in {list, dict} or _is_of_arrays(item)


def is_shared_array(value: Any) -> bool:
    """Tell whether a value is an array whose memory may be the ranks' own in common."""
    return is_array(value) and not _owns_memory(value)


def _text_of_container(item: list[Any] | tuple[Any, ...] | dict[Any, Any], depth: int) -> str:
    if isinstance(item, dict):
        pairs = [f"{_part(key, depth)}: {_part(value, depth)}" for key, value in islice(item.items(), _ITEMS)]
        return f"{{{_in_short(sorted(pairs), len(item))}}}"  # equal ones may have another order
    text = _in_short([_part(part, depth) for part in item[:_ITEMS]], len(item))
    return f"[{text}]" if isinstance(item, list) else f"({text})"


def _part(part: Any, depth: int) -> str:
    return text_of(part, depth) or _UNKNOWN


def _in_short(texts: Iterable[str], length: int) -> str:
    return ", ".join([*texts, f"{_UNKNOWN} {length} in all"] if length > _ITEMS else texts)


def _text_of_numbers(item: Any) -> str | None:
    """Return the text of an array, a number of numpy's, or a tensor."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and isinstance(item, numpy.generic):
        number = item.item()
        return None if isinstance(number, numpy.generic) else text_of(number, 0)  # Python has none so long
    if numpy is not None and type(item) is numpy.ndarray:
        if item.dtype.kind in _KINDS_OF_ARRAYS and _owns_memory(item):
            return _text_of_array(item.flat, item.shape, is_exact=item.dtype.kind in _EXACT)
    elif torch is not None and type(item) is torch.Tensor and _is_private(item, torch):
        is_exact = not (item.is_floating_point() or item.is_complex())
        return _text_of_array(item.detach().reshape(-1), tuple(item.shape), is_exact=is_exact)
    return None


def _is_of_arrays(item: Any) -> bool:
    """Tell whether an item is an array, a tensor, or a number of numpy's, which was read from an array."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    kinds = [*([numpy.ndarray, numpy.generic] if numpy else []), *([torch.Tensor] if torch else [])]
    return isinstance(item, tuple(kinds))


def _text_of_array(flat: Any, shape: tuple[int, ...], *, is_exact: bool) -> str | None:
    """Return the text of some numbers; many that may be drawn (an image, turned at random) have none."""
    if not is_exact and len(flat) > _NUMBERS:
        return None
    numbers = flat[:_NUMBERS].tolist()
    if not shape:
        return text_of(numbers[0])
    text = f"[{', '.join(_part(number, 0) for number in numbers)}]"
    return text if len(shape) == 1 and len(flat) <= _NUMBERS else f"{text} of shape {shape}"


def _owns_memory(array: Any) -> bool:
    """Tell whether numpy made an array's memory in this process, as it made that of no shared one."""
    return bool(root(array, is_array).flags.owndata)


def _is_private(tensor: Any, torch: Any) -> bool:
    """Tell whether torch made a tensor's memory in this process, and for it alone."""
    if not tensor.is_cpu or tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        return False
    storage = tensor.untyped_storage()
    return storage.resizable() and not storage.is_shared()  # a storage over foreign memory can't be resized
