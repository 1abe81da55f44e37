"""The parameters of the notebook's models in a rank: told of where the cell gives one other memory.

What is written into such a one from then on stays in the rank, though the code looks as if it trained the
notebook's: `p.data = p.data - rate * p.grad`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from nbshm.words import listed


class _Memory(NamedTuple):
    """Where a parameter lies, and of what kind it is there: a model that is converted is another one."""

    address: int
    dtype: torch.dtype
    device: torch.device


class NotebooksParameters:
    """Where the parameters of models lie that names lead to, as the body finds them."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._models = {
            name: (weakref.ref(value), dict(_memories(value)))
            for name, value in list(namespace.items())
            if issubclass(type(value), torch.nn.Module) and not name.startswith("_")
        }

    def given_other_memory(self) -> list[str]:
        """Return the paths of those that lie elsewhere now, in models that have their names still."""
        return [
            f"{name}.{path}"
            for name, (model, before) in self._models.items()
            if name in self._namespace and self._namespace[name] is model()
            for path, memory in _memories(self._namespace[name])
            if _has_moved(before.get(path), memory)
        ]


def in_words(paths: Sequence[str]) -> str:
    """Say of parameters that they have been given other memory, and what to do."""
    were = "was" if len(paths) == 1 else "were"
    return (
        f"{listed(paths)} {were} given memory of this rank's own (p.data = ..., a new Parameter, "
        "assign=True): the notebook sees nothing of what is written there. "
        "Write in place: p.data.copy_(...), p.data -= ..."
    )


def _memories(model: torch.nn.Module) -> Iterator[tuple[str, _Memory]]:
    if "_modules" not in vars(model):  # its __init__ was never run
        return
    for path, parameter in torch.nn.Module.named_parameters(model):
        if type(parameter) is torch.nn.Parameter and parameter.layout is torch.strided:
            yield path, _Memory(parameter.data_ptr(), parameter.dtype, parameter.device)


def _has_moved(before: _Memory | None, now: _Memory) -> bool:
    return before is not None and before[1:] == now[1:] and before.address != now.address
