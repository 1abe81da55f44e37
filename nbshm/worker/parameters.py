"""Parameters and buffers of the notebook's models in a rank: told of where the cell gives one other memory.

What is written into such a one from then on stays in the rank, though the code looks as if it trained the
notebook's: `p.data = p.data - rate * p.grad`, `self.mean = 0.9 * self.mean + 0.1 * x.mean(0)`,
`fully_shard(net)`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from nbshm.words import listed


@dataclass(slots=True)
class Moved:
    """The paths of parameters and buffers that lie in memory of this rank's own by now.

    Those that are `sharded` have been made DTensors, parts of which are all that a rank has.
    """

    replaced: list[str] = field(default_factory=list)
    sharded: list[str] = field(default_factory=list)

    def in_words(self) -> Iterator[str]:
        """Say of either kind what happened, and what to do."""
        if self.replaced:
            yield (
                f"{listed(self.replaced)} {_were(self.replaced)} given memory of this rank's own "
                "(p.data = ..., a new Parameter, another buffer, assign=True): the notebook sees nothing of "
                "what is written there. Write in place: p.data.copy_(...), p.data -= ..., buffer.copy_(...)"
            )
        if self.sharded:
            yield (
                f"{listed(self.sharded)} {_were(self.sharded)} sharded (fully_shard, parallelize_module): "
                "the notebook sees nothing of what is written into a part. Shard copy.deepcopy(net), and "
                "bring the end's home, net.load_state_dict(get_model_state_dict(sharded, "
                "options=StateDictOptions(full_state_dict=True)))."
            )


class NotebooksParameters:
    """Where the parameters and buffers of models lie that names lead to, as the body finds them."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._models = {
            name: (weakref.ref(value), dict(_memories(value)))
            for name, value in list(namespace.items())
            if issubclass(type(value), torch.nn.Module) and not name.startswith("_")
        }

    def moved(self) -> Moved:
        """Return those that lie elsewhere now, in models that have their names still."""
        moved = Moved()
        for name, (model, before) in self._models.items():
            if name in self._namespace and self._namespace[name] is model():
                for path, memory in _memories(self._namespace[name]):
                    if path in before and memory.has_moved_from(before[path]):
                        paths = moved.sharded if memory.is_part else moved.replaced
                        paths.append(f"{name}.{path}")
        return moved


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """Where a parameter or a buffer lies, and of what kind it is there.

    A buffer's `contents` are looked at, too: one that is made anew to say the same loses nothing.
    """

    address: int
    dtype: torch.dtype
    device: torch.device
    is_part: bool = False
    contents: torch.Tensor | None = None

    def has_moved_from(self, before: _Memory) -> bool:
        """Tell whether it is another memory; a model that is converted is another one."""
        if self.address == before.address:
            return False
        if self.is_part:
            return not before.is_part
        return (self.dtype, self.device) == (before.dtype, before.device) and self._says_other_than(before)

    def _says_other_than(self, before: _Memory) -> bool:
        """Tell whether contents are lost; of another shape they are a cache that has grown, say."""
        if self.contents is None or before.contents is None:
            return True
        same_shape = self.contents.shape == before.contents.shape
        return same_shape and not torch.equal(self.contents, before.contents)


def _memories(model: torch.nn.Module) -> Iterator[tuple[str, _Memory]]:
    if "_modules" not in vars(model):  # its __init__ was never run
        return
    for path, parameter in torch.nn.Module.named_parameters(model):
        if type(parameter) is torch.nn.Parameter and parameter.layout is torch.strided:
            yield path, _memory(parameter)
        elif hasattr(parameter, "to_local"):  # a DTensor, whose room is loaded by those that use it only
            yield path, _memory(parameter.to_local().detach(), is_part=True)
    for path, buffer in _kept_buffers(model):
        if type(buffer) is torch.Tensor and buffer.layout is torch.strided:
            yield path, _memory(buffer, contents=buffer.detach())


def _memory(tensor: torch.Tensor, *, is_part: bool = False, contents: torch.Tensor | None = None) -> _Memory:
    return _Memory(
        address=tensor.data_ptr(),
        dtype=tensor.dtype,
        device=tensor.device,
        is_part=is_part,
        contents=contents,
    )


def _kept_buffers(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the buffers that are part of a model's state; others are caches, made anew as needed."""
    for prefix, module in torch.nn.Module.named_modules(model):
        passing = module._non_persistent_buffers_set  # noqa: SLF001  # `state_dict` alone tells it, and runs hooks
        for name, buffer in torch.nn.Module.named_buffers(module, prefix, recurse=False):
            if name.rpartition(".")[2] not in passing:
                yield name, buffer


def _were(paths: list[str]) -> str:
    return "was" if len(paths) == 1 else "were"
