"""How tensors travel: as a storage that is shared, and what it takes to see it as the same tensor again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from torch.multiprocessing import reductions

from nbshm.memory.buffers import Buffers
from nbshm.memory.sparse import reduce_sparse
from nbshm.memory.storages import reduce_storage
from nbshm.refusals import Unsendable

Reduced: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorReducer:
    """Reduces tensors for one pickle.

    What is common, a tensor with strides on the CPU, is reduced here, because a notebook may have
    thousands. All else goes the way of torch's own pickling, which knows quantizers, sparse layouts,
    conjugate bits and attributes, and meets the same storages in the end.
    """

    buffers: Buffers

    def storage(self, storage: torch.UntypedStorage) -> Reduced:
        """Reduce a storage that something other than a plain tensor holds."""
        return reduce_storage(storage, self.buffers)

    def tensor(self, tensor: torch.Tensor) -> Reduced:
        """Reduce a tensor or a parameter."""
        _refuse_what_cannot_travel(tensor)
        if tensor.device.type == "cuda":
            return reductions.reduce_tensor(tensor)  # type: ignore[no-any-return, no-untyped-call]
        reduced = self._plain(tensor) if _is_plain(tensor) else _unusual(tensor)
        if not tensor.is_leaf or tensor.grad is None:
            return reduced
        return _with_state(reduced, _State(grad=tensor.grad))

    def _plain(self, tensor: torch.Tensor) -> Reduced:
        storage = tensor.untyped_storage()
        reduce_storage(storage, self.buffers, holder=tensor)
        layout = (tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
        return rebuild_tensor, (type(tensor), storage, *layout, tensor.requires_grad)


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What is put on a tensor once it is there."""

    attributes: dict[str, Any] | None = None
    requires_grad: bool = False
    grad: torch.Tensor | None = None


def rebuild_tensor(  # noqa: PLR0917  # pickle calls with positions only
    kind: type[torch.Tensor],
    storage: torch.UntypedStorage,
    dtype: torch.dtype,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    requires_grad: bool,  # noqa: FBT001  # likewise
) -> torch.Tensor:
    """Make a tensor over a storage."""
    tensor = torch.empty(0, dtype=dtype, device="cpu").set_(storage, offset, shape, strides)
    if kind is torch.nn.Parameter:
        return torch.nn.Parameter(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_() if requires_grad else tensor


def restore_state(tensor: torch.Tensor, state: _State) -> None:
    """Put on a tensor what its parts don't tell."""
    if state.attributes:
        vars(tensor).update(state.attributes)
    if state.requires_grad:
        tensor.requires_grad_()
    if state.grad is not None:
        tensor.grad = state.grad


def reducers(buffers: Buffers) -> dict[type, Callable[[Any], Reduced]]:
    """Return the reducers of one pickle, by exact type; a subclass pickles itself, down to storages."""
    reducer = TensorReducer(buffers=buffers)
    return {
        torch.Tensor: reducer.tensor,
        torch.nn.Parameter: reducer.tensor,
        torch.UntypedStorage: reducer.storage,
        torch.storage.TypedStorage: reductions.reduce_typed_storage,
    }


def _unusual(tensor: torch.Tensor) -> Reduced:
    """Reduce a tensor that is more than a storage with strides."""
    if tensor.layout is torch.strided and not tensor.is_nested:
        return tensor.__reduce_ex__(5)  # type: ignore[no-any-return, no-untyped-call]
    # The parts of a tensor that requires grad would not be leaves.
    detached = tensor.detach()
    reduced: Reduced = (
        detached.__reduce_ex__(5) if tensor.is_nested else reduce_sparse(detached)  # type: ignore[no-untyped-call]
    )
    if vars(tensor) or tensor.requires_grad:
        return _with_state(reduced, _State(attributes=dict(vars(tensor)), requires_grad=tensor.requires_grad))
    return reduced


def _with_state(reduced: Reduced, state: _State) -> Reduced:
    """Add to a reduction what is put on the tensor afterwards, over what it has of that already."""
    function, arguments, *more = reduced
    if more and isinstance(more[0], _State):
        state = replace(more[0], grad=state.grad)
    return function, arguments, state, None, None, restore_state


def _refuse_what_cannot_travel(tensor: torch.Tensor) -> None:
    if tensor.requires_grad and not tensor.is_leaf:
        raise Unsendable("it is part of an autograd graph, which can't cross processes", "Send its detach().")
    if tensor.device.type == "meta":
        raise Unsendable("it is a meta tensor, which has no data", "Make it inside the cell.")
    if tensor.is_mkldnn:
        raise Unsendable("its layout is private to MKL-DNN", "Send its to_dense().")
    if _reaches_beyond_storage(tensor):
        raise Unsendable(
            "its shape reaches beyond its storage, as a resize that failed leaves it", "Make it anew."
        )


def _reaches_beyond_storage(tensor: torch.Tensor) -> bool:
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.numel() == 0:
        return False
    layout = zip(tensor.shape, tensor.stride(), strict=True)
    last = tensor.storage_offset() + sum((length - 1) * stride for length, stride in layout)
    return (last + 1) * tensor.element_size() > tensor.untyped_storage().nbytes()


def _is_plain(tensor: torch.Tensor) -> bool:
    """Tell whether a storage, a dtype, a shape and strides are all there is to a tensor."""
    return (
        tensor.layout is torch.strided
        and not tensor.is_nested
        and not tensor.is_quantized
        and not tensor.is_conj()
        and not tensor.is_neg()
        and not vars(tensor)
        and not tensor._backward_hooks  # noqa: SLF001  # torch's own pickling looks there, and warns
    )
