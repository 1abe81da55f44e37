"""Random graphs of arrays and tensors over one another's memory, written to from a worker."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_notebook import Notebook

SIZE = 12
KINDS = [
    "array",
    "view",
    "reversed",
    "columns",
    "tensor",
    "slice",
    "from_numpy",
    "numpy",
    "read_only",
    "list",
]

Step = tuple[str, int]


def build(steps: list[Step]) -> dict[str, Any]:
    """Make a graph: each step makes a value, most of them over the memory of one that was made before."""
    made: list[Any] = [np.arange(SIZE, dtype="i8"), torch.arange(SIZE)]
    held = []
    for kind, choice in steps:
        arrays = [value for value in made if isinstance(value, np.ndarray)]
        tensors = [value for value in made if isinstance(value, torch.Tensor)]
        value = make(kind, arrays[choice % len(arrays)], tensors[choice % len(tensors)])
        if kind == "list":
            held.append(value)
        else:
            made.append(value)
    return {f"v{number}": value for number, value in enumerate([*made, held])}


def make(kind: str, array: Any, tensor: Any) -> Any:  # noqa: PLR0911  # one for each kind
    match kind:
        case "array":
            return np.arange(SIZE, dtype="i8")
        case "tensor":
            return torch.arange(SIZE)
        case "view":
            return array[len(array) // 3 :]
        case "reversed":
            return array[::-1]
        case "columns":
            return array[::2]
        case "slice":
            return tensor[len(tensor) // 3 :]
        case "from_numpy":
            owned = (
                array
                if array.flags.writeable and all(step > 0 for step in array.strides)
                else np.zeros(3, "i8")
            )
            return torch.from_numpy(owned)
        case "numpy":
            return tensor.numpy()
        case "read_only":
            view = array[:]
            view.flags.writeable = False
            return view
        case _:
            return [array, tensor]


def write(values: dict[str, Any], names: list[str]) -> None:
    """Write into one element of each value that can be written to."""
    for number, name in enumerate(names):
        value = values[name]
        writeable = isinstance(value, torch.Tensor) or (
            isinstance(value, np.ndarray) and value.flags.writeable
        )
        if writeable and len(value):
            value[number % len(value)] += 100 * (number + 1)


def plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: [part.tolist() for part in flat(value)] for name, value in values.items()}


def flat(value: Any) -> list[Any]:
    return [part for item in value for part in flat(item)] if isinstance(value, list) else [value]


@given(
    steps=st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 20)), max_size=12),
    chosen=st.sets(st.integers(0, 14)),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_holder_sees_what_was_written_through_any_other(notebook: Notebook, steps, chosen):
    expected = build(steps)
    names = [name for number, name in enumerate(expected) if number in chosen]
    write(expected, names)
    notebook.namespace.clear()
    notebook.namespace.update(build(steps), names=names)
    (result,) = notebook.run(
        "from test_alias_graphs import write\n"
        "result = {name: globals()[name] for name in names}\n"
        "write(result, names)",
        "names",
        *names,
    )
    values = {name: notebook[name] for name in expected}
    assert plain(values) == plain(expected)
    for name in names:
        for got, own in zip(flat(result[name]), flat(values[name]), strict=True):
            assert address(got) == address(own)


def address(value: Any) -> int:
    return value.data_ptr() if isinstance(value, torch.Tensor) else value.__array_interface__["data"][0]
