"""Why a storage stays where it is: names that keep an autograd graph over it, or something else."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from nbshm.memory.ownership.paths import levels
from nbshm.memory.tensors.cuda import is_pinned
from nbshm.words import listed

_STEPS = 4  # from a name to what was computed: the items of a list of losses, the attributes of an object


def names_of_graphs(tensors: Iterable[torch.Tensor], names: Mapping[Any, Any]) -> list[str]:
    """Return the names that lead to a graph which leads to one of some parameters, IPython's own last.

    A tensor without `requires_grad` that a graph has saved is not found: to look at what is saved may run
    code, even compute it anew (a checkpoint's).
    """
    wanted = {id(tensor) for tensor in tensors}
    found: dict[str, None] = {}
    for level in itertools.islice(levels(names), _STEPS):
        for name, value in level:
            root = name.partition(".")[0]
            is_new = root not in found and issubclass(type(value), torch.Tensor)
            if is_new and any(id(leaf) in wanted for leaf in _leaves(value)):
                found[root] = None
    return list(found)


def why_storage_stays(storage: torch.UntypedStorage, graphs: Sequence[str]) -> str:
    """Return why a storage can't be moved, as a clause; `graphs` are names that keep a graph over it."""
    if is_pinned(storage):
        return "it is pinned for a GPU, which shared memory is not"
    if not storage.resizable():
        return "a numpy array or another library looks at its memory"
    if graphs:
        return f"what was computed from it is still there (an autograd graph: {listed(graphs)})"
    return "something that can't be seen (a jagged tensor, a DLPack consumer, an autograd graph) holds it"


def _leaves(tensor: torch.Tensor) -> Iterator[Any]:
    """Yield the tensors that a graph would add gradients to."""
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001  # a class must not see that it is looked at
        waiting = [tensor.grad_fn]
    seen: set[Any] = set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield getattr(node, "variable", None)
            waiting.extend(following for following, _ in node.next_functions)
