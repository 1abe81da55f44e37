"""How nested tensors travel: as one storage, and where in it each of their parts lies."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

Reduced: TypeAlias = tuple[Any, ...]


def reduce_nested(tensor: torch.Tensor) -> Reduced:
    """Reduce a nested tensor of parts with strides to its storage and the layouts of the parts."""
    storage = tensor.untyped_storage()
    layouts = (
        tensor._nested_tensor_size(),  # noqa: SLF001  # as torch's own pickling does, here and below
        tensor._nested_tensor_strides(),  # noqa: SLF001
        tensor._nested_tensor_storage_offsets(),  # noqa: SLF001
    )
    return rebuild_nested, (storage, tensor.dtype, *(layout.tolist() for layout in layouts))


def rebuild_nested(
    storage: torch.UntypedStorage,
    dtype: torch.dtype,
    sizes: list[list[int]],
    strides: list[list[int]],
    offsets: list[int],
) -> torch.Tensor:
    """Make a nested tensor over a storage."""
    count = storage.nbytes() // dtype.itemsize
    buffer = torch.empty(0, dtype=dtype, device=storage.device).set_(storage, 0, (count,), (1,))
    layouts = (torch.tensor(each, dtype=torch.int64, device="cpu") for each in (sizes, strides, offsets))
    return torch._nested_view_from_buffer(buffer, *layouts)  # noqa: SLF001  # as torch's own unpickling does
