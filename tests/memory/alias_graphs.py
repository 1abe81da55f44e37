"""Random graphs of arrays, tensors and containers over one another's memory."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Step = tuple[str, int, int]
"""A kind of value, which of the values before it is made from, and a number that varies it."""

DTYPES = ["i8", "f4", ">f8", "c16", "u1", "?", "f2"]
TORCH_DTYPES = [
    torch.int64,
    torch.float32,
    torch.bfloat16,
    torch.complex64,
    torch.uint8,
    torch.bool,
    torch.int16,
]

OF_ARRAYS: dict[str, Callable[[Any, int], Any]] = {
    "part": lambda array, number: array[number % 5 :],
    "reversed": lambda array, _: array[::-1],
    "stepped": lambda array, number: array[:: 2 + number % 2],
    "turned": lambda array, _: array.T,
    "row": lambda array, number: array[number % len(array), ...],
    "reshaped": lambda array, _: array.reshape(2, -1),
    "as other numbers": lambda array, number: array.view(DTYPES[number % len(DTYPES)]),
    "wide": lambda array, _: np.lib.stride_tricks.as_strided(array, (3, *array.shape), (0, *array.strides)),
    "read-only": lambda array, _: locked(array[...]),
    "from_numpy": lambda array, _: torch.from_numpy(array) if array.flags.writeable else torch.zeros(9),
    "masked": lambda array, _: np.ma.array(array, copy=False),
}
OF_TENSORS: dict[str, Callable[[Any, int], Any]] = {
    "slice": lambda tensor, number: tensor[number % 5 :],
    "every other": lambda tensor, number: tensor[:: 2 + number % 2],
    "transposed": lambda tensor, _: tensor.transpose(0, -1),
    "element": lambda tensor, number: tensor[number % len(tensor)],
    "viewed": lambda tensor, _: tensor.view(2, -1),
    "as other dtype": lambda tensor, number: tensor.view(TORCH_DTYPES[number % len(TORCH_DTYPES)]),
    "expanded": lambda tensor, _: tensor.expand(3, *tensor.shape),
    "windows": lambda tensor, _: tensor.as_strided((3, 2), (1, 1)),
    "numpy": lambda tensor, _: tensor.numpy(),
    "dlpack": lambda tensor, _: np.from_dlpack(tensor),
    "conjugate": lambda tensor, _: tensor.conj(),
}
NEW: dict[str, Callable[[int], Any]] = {
    "array": lambda number: np.zeros(24, DTYPES[number % len(DTYPES)]),
    "table": lambda number: np.zeros((4, 6), DTYPES[number % len(DTYPES)], order="CF"[number % 2]),
    "tensor": lambda number: torch.zeros(24, dtype=TORCH_DTYPES[number % len(TORCH_DTYPES)]),
    "matrix": lambda number: torch.zeros(4, 6, dtype=TORCH_DTYPES[number % len(TORCH_DTYPES)]),
    "bytes": lambda number: np.frombuffer(bytearray(48), DTYPES[number % len(DTYPES)]),
}
BOXES: dict[str, Callable[[Any, Any], Any]] = {
    "list": lambda first, second: [first, second],
    "tuple": lambda first, second: (first, second),
    "dictionary": lambda first, second: {"a": first, "b": second},
    "namespace": lambda first, second: types.SimpleNamespace(a=first, b=second),
    "nested": lambda first, second: [[{"a": (first,)}], second],
}
KINDS = [*NEW, *OF_ARRAYS, *OF_TENSORS, *BOXES]


def build(steps: list[Step]) -> dict[str, Any]:
    """Make a graph: each step makes a value, most of them over the memory of one that was made before."""
    made: list[Any] = [np.zeros(24), torch.zeros(24)]
    boxes: list[Any] = []
    for kind, choice, number in steps:
        arrays = [value for value in made if isinstance(value, np.ndarray)]
        tensors = [value for value in made if isinstance(value, torch.Tensor)]
        array, tensor = arrays[choice % len(arrays)], tensors[choice % len(tensors)]
        if kind in BOXES:
            boxes.append(BOXES[kind](array, tensor))
        else:
            made.append(make(kind, array, tensor, number))
    return {f"v{number}": value for number, value in enumerate([*made, *boxes])}


def make(kind: str, array: Any, tensor: Any, number: int) -> Any:
    """Make a value; where the other does not lend itself to the kind, a plain view of it."""
    try:
        if kind in NEW:
            return NEW[kind](number)
        return OF_ARRAYS[kind](array, number) if kind in OF_ARRAYS else OF_TENSORS[kind](tensor, number)
    except (ValueError, TypeError, RuntimeError, IndexError, ZeroDivisionError, BufferError):
        return array[...] if kind in OF_ARRAYS else tensor[...]


def write(values: dict[str, Any], names: list[str]) -> None:
    """Write into one element of each value that can be written to."""
    for number, name in enumerate(names):
        for value in flat(values[name]):
            if isinstance(value, torch.Tensor):
                _write_tensor(value, number)
            elif value.flags.writeable and value.size:
                value[np.unravel_index(7 * number % value.size, value.shape)] = 1 + number % 100


def _write_tensor(value: torch.Tensor, number: int) -> None:
    if value.numel():
        index = tuple(int(axis) for axis in np.unravel_index(7 * number % value.numel(), tuple(value.shape)))
        value[index] = 1 + number % 100


def flat(value: Any) -> list[Any]:
    """Return the arrays and tensors in a value."""
    match value:
        case np.ndarray() | torch.Tensor():
            return [value]
        case dict():
            parts = list(value.values())
        case types.SimpleNamespace():
            parts = list(vars(value).values())
        case _:
            parts = list(value)
    return [leaf for part in parts for leaf in flat(part)]


def plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return what values are, as something that can be compared."""
    return {name: [_plain(part) for part in flat(value)] for name, value in values.items()}


def _plain(value: Any) -> tuple[Any, ...]:
    if isinstance(value, torch.Tensor):
        # A copy, because one element alone is contiguous whatever its stride.
        copied = value.resolve_conj().clone(memory_format=torch.contiguous_format)
        elements = copied.view(-1).view(torch.uint8).tolist()
        return value.dtype, tuple(value.shape), value.stride(), value.is_conj(), elements
    return value.dtype, value.strides, value.flags.writeable, type(value), value.tobytes()


def address(value: Any) -> int:
    return value.data_ptr() if isinstance(value, torch.Tensor) else value.__array_interface__["data"][0]


def locked(array: Any) -> Any:
    array.flags.writeable = False
    return array
