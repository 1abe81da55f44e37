"""How sparse tensors travel: by their parts, which are tensors with memory to share.

torch's own reduction would do, but it keeps every tensor that it rebuilds in a list that only `torch.load`
empties. Where the parts lie is said, or they would be copied to the default device.
"""

from __future__ import annotations

import warnings
from typing import Any, TypeAlias

import torch

Reduced: TypeAlias = tuple[Any, ...]


def parts_of(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return what a sparse tensor that does not require grad consists of: indices, then values."""
    if tensor.layout is torch.sparse_coo:
        # `indices()` and `values()` are for coalesced tensors only.
        return tensor._indices(), tensor._values()  # noqa: SLF001
    if tensor.layout in {torch.sparse_csr, torch.sparse_bsr}:
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return tensor.ccol_indices(), tensor.row_indices(), tensor.values()


def reduce_sparse(tensor: torch.Tensor) -> Reduced:
    """Reduce a sparse tensor that does not require grad to its parts."""
    shape = tuple(tensor.shape)
    if tensor.layout is torch.sparse_coo:
        return rebuild_coordinates, (*parts_of(tensor), shape, tensor.is_coalesced())
    return rebuild_compressed, (*parts_of(tensor), shape, tensor.layout)


def rebuild_coordinates(
    indices: torch.Tensor,
    values: torch.Tensor,
    shape: tuple[int, ...],
    is_coalesced: bool,  # noqa: FBT001  # pickle calls with positions only
) -> torch.Tensor:
    """Make a sparse tensor of coordinates and values over their memory."""
    return torch.sparse_coo_tensor(
        indices, values, shape, device=values.device, check_invariants=False, is_coalesced=is_coalesced
    )


def rebuild_compressed(
    compressed: torch.Tensor,
    plain: torch.Tensor,
    values: torch.Tensor,
    shape: tuple[int, ...],
    layout: torch.layout,
) -> torch.Tensor:
    """Make a sparse tensor with compressed rows or columns over the memory of its parts."""
    with warnings.catch_warnings():
        # Each process is told once that these are in beta; the notebook was, when it made the tensor.
        warnings.filterwarnings("ignore", "Sparse .* tensor support is in beta state")
        return torch.sparse_compressed_tensor(
            compressed, plain, values, shape, layout=layout, device=values.device, check_invariants=False
        )
