"""How a tensor looks from outside; its class does not see that it is looked at."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from nbshm.memory.ownership.extents import address_span
from nbshm.memory.tensors.cuda import is_handed_over
from nbshm.memory.tensors.sparse import parts_of


def kind_and_shape(tensor: torch.Tensor) -> tuple[str, str]:
    """Return layout and element type, and the lengths of the dimensions, in words."""
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001  # the only way
        layout = "" if tensor.layout is torch.strided else f"{tensor.layout} "
        kind = f"{layout}tensor {tensor.dtype}".replace("torch.", "")
        lengths = (tensor.size(0), "?") if tensor.is_nested else tensor.shape  # each part has others
        return kind, " x ".join(map(str, lengths)) or "()"


def pieces(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the tensors with memory that a tensor consists of: most of itself alone."""
    if address_span(tensor) is not None:
        return [tensor]
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001  # as above
        return list(_parts(tensor))


def is_handed_over_by_cuda(tensor: torch.Tensor) -> bool:
    """Tell whether processes have been given a handle of a tensor's memory on a GPU."""
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001  # as above
        return is_handed_over(tensor.untyped_storage())


def _parts(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    if tensor.layout not in {torch.strided, torch.jagged}:
        yield from parts_of(tensor.detach())
        return
    for part in vars(tensor).values():  # nested and masked tensors hold them so
        if issubclass(type(part), torch.Tensor):
            yield from pieces(part)
