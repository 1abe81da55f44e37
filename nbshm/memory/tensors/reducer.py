"""How tensors travel: as a storage that is shared, and what it takes to see it as the same tensor again."""

from __future__ import annotations

import copyreg
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.multiprocessing import reductions
from torch.utils.hooks import RemovableHandle

from nbshm.memory.buffers import Buffers
from nbshm.memory.tensors.cuda import is_on_cuda
from nbshm.memory.tensors.nested import reduce_nested
from nbshm.memory.tensors.plain_tensors import PlainTensors
from nbshm.memory.tensors.sparse import reduce_sparse
from nbshm.memory.tensors.storages import reduce_storage
from nbshm.refusals import Unshareable

Reduced: TypeAlias = tuple[Any, ...]
Hooks: TypeAlias = dict[int, Callable[..., Any]]

_SMALLER_THAN_A_BYTE = frozenset({torch.quint4x2, torch.quint2x4})


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorReducer:
    """Reduces tensors for one pickle.

    Plain ones go the quickest way, others with strides on the CPU a more careful one. Sparse ones go by their
    parts, quantized and nested ones the way of torch's own pickling; all meet the same storages in the end.
    What torch loses on the way (the bits for conjugate and negative, hooks, a grad, the class of a parameter)
    is put on the tensor afterwards. `meet_graph` refuses what is part of an autograd graph, or lets it travel
    without that.
    """

    buffers: Buffers
    plain: PlainTensors
    meet_graph: Callable[[str, str], None]

    def storage(self, storage: torch.UntypedStorage) -> Reduced:
        """Reduce a storage that something other than a plain tensor holds."""
        return reduce_storage(storage, self.buffers)

    def plain_tensor(self, tensor: torch.Tensor) -> Reduced:
        """Reduce a tensor of no other class, which is likely to be plain."""
        return self.plain.reduce(tensor) or self.tensor(tensor)

    def tensor(self, tensor: torch.Tensor) -> Reduced:
        """Reduce a tensor that is not plain, or whose class says nothing of pickling, as a parameter."""
        with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001  # a class must not see that it is looked at
            _refuse_what_cannot_travel(tensor)
            self._meet_graphs(tensor)
            reduced = self._by_strides(tensor) if _has_plain_strides(tensor) else self._by_parts(tensor)
            return _with_state(reduced, tensor)

    def of_class(self, kind: type) -> Callable[[torch.Tensor], Reduced] | None:
        """Return the reducer of a class that is derived from tensors; None if the class pickles itself."""
        if not issubclass(kind, torch.Tensor) or kind in copyreg.dispatch_table:
            return None
        if kind.__name__ == "FakeTensor" and kind.__module__.startswith("torch."):
            return _refuse_fake
        return None if _pickles_itself(kind) else self.tensor

    def _meet_graphs(self, tensor: torch.Tensor) -> None:
        if not tensor.is_leaf:
            self.meet_graph("it", "{new}detach()")
        elif tensor.grad is not None and not tensor.grad.is_leaf:
            self.meet_graph("its grad", "{its}grad.detach_()")

    def _by_strides(self, tensor: torch.Tensor) -> Reduced:
        storage = tensor.untyped_storage()
        if not is_on_cuda(storage):
            reduce_storage(storage, self.buffers, holder=tensor)
        layout = (tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
        return rebuild_tensor, (type(tensor), storage, *layout, _keeps_grad(tensor))

    def _by_parts(self, tensor: torch.Tensor) -> Reduced:
        """Reduce a tensor that is more than a storage with strides."""
        # The parts of a tensor that requires grad would not be leaves.
        plain = tensor.detach() if tensor.requires_grad else tensor
        if tensor.layout is torch.strided and tensor.is_nested:
            make, parts = reduce_nested(plain)
            self._note_holder([tensor], tensor)
        elif tensor.layout is torch.strided or tensor.is_nested:
            make, parts = plain.__reduce_ex__(5)  # type: ignore[no-untyped-call]
        else:
            make, parts = reduce_sparse(plain)
            self._note_holder(parts, tensor)
        return rebuild_from_parts, (type(tensor), make, parts, _keeps_grad(tensor))

    def _note_holder(self, parts: Iterable[Any], holder: torch.Tensor) -> None:
        """Have a sparse tensor stand for the parts that it holds in C++, of which Python is given aliases."""
        for part in parts:
            if isinstance(part, torch.Tensor) and part.is_cpu and part._base is None:  # noqa: SLF001  # a view tells what it is of
                reduce_storage(part.untyped_storage(), self.buffers, holder=holder)


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What is put on a tensor once it is there."""

    attributes: dict[str, Any]
    bits: dict[str, bool]
    grad: torch.Tensor | None
    hooks: Hooks | None
    hooks_after_grad: Hooks | None


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
    tensor = _empty(dtype, storage.device).set_(storage, offset, shape, strides)
    return _as_kind(kind, tensor, requires_grad=requires_grad)


def _empty(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if dtype is not torch.complex32:
        return torch.empty(0, dtype=dtype, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is experimental was told where it was made first
        return torch.empty(0, dtype=dtype, device=device)


def rebuild_from_parts(
    kind: type[torch.Tensor],
    make: Callable[..., torch.Tensor],
    parts: tuple[Any, ...],
    requires_grad: bool,  # noqa: FBT001  # pickle calls with positions only
) -> torch.Tensor:
    """Make a tensor of its parts; that its layout is a prototype, say, was told where it was made first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = make(*parts)
    return _as_kind(kind, made, requires_grad=requires_grad)


def restore_state(tensor: torch.Tensor, state: _State) -> None:
    """Put on a tensor what its parts don't tell."""
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001  # as in `TensorReducer.tensor`
        if state.bits:
            torch._utils.set_tensor_metadata(tensor, state.bits)  # type: ignore[no-untyped-call] # noqa: SLF001  # as torch.load does
        vars(tensor).update(state.attributes)
        if state.grad is not None:
            tensor.grad = state.grad
        if state.hooks:
            tensor._backward_hooks = _received(state.hooks)  # noqa: SLF001  # where `register_hook` keeps them
        if state.hooks_after_grad:
            tensor._post_accumulate_grad_hooks = _received(state.hooks_after_grad)  # noqa: SLF001  # likewise


def _received(hooks: Hooks) -> Hooks:
    """See that a hook that is registered here does not get the number of one that came along."""
    RemovableHandle.next_id = max(RemovableHandle.next_id, *(number + 1 for number in hooks))
    return hooks


def reducers(reducer: TensorReducer) -> dict[type, Callable[[Any], Reduced]]:
    """Return the reducers of one pickle, by exact type."""
    return {
        torch.Tensor: reducer.plain_tensor,
        torch.nn.Parameter: reducer.tensor,
        torch.UntypedStorage: reducer.storage,
        torch.storage.TypedStorage: reductions.reduce_typed_storage,
    }


def _as_kind(kind: type[torch.Tensor], tensor: torch.Tensor, *, requires_grad: bool) -> torch.Tensor:
    if kind is not torch.Tensor:
        # What the constructor of a parameter calls.
        made: torch.Tensor = torch.Tensor._make_subclass(kind, tensor, requires_grad)  # noqa: SLF001
        return made
    return tensor.requires_grad_() if requires_grad else tensor


def _keeps_grad(tensor: torch.Tensor) -> bool:
    """Tell whether a tensor requires grad where it arrives: one without its graph would be a leaf."""
    return tensor.requires_grad and tensor.is_leaf


def _with_state(reduced: Reduced, tensor: torch.Tensor) -> Reduced:
    """Add to a reduction what is put on the tensor afterwards, if there is anything."""
    attributes = vars(tensor)
    grad = tensor.grad if tensor.is_leaf else None  # torch warns who asks another one for it
    # torch's own pickling looks there too, and warns that it leaves hooks behind.
    hooks = tensor._backward_hooks if tensor.is_leaf else None  # noqa: SLF001
    after_grad = _hooks_after_grad(tensor)
    has_bits = tensor.is_conj() or tensor.is_neg()
    if not (attributes or hooks or after_grad or has_bits) and grad is None:
        return reduced
    bits = torch._utils.get_tensor_metadata(tensor) if has_bits else {}  # type: ignore[no-untyped-call] # noqa: SLF001  # as torch.save does
    state = _State(
        attributes=attributes, bits=bits, grad=grad, hooks=hooks or None, hooks_after_grad=after_grad
    )
    return (*reduced, state, None, None, restore_state)


def _hooks_after_grad(tensor: torch.Tensor) -> Hooks | None:
    return getattr(tensor, "_post_accumulate_grad_hooks", None) or None  # there since torch 2.1


def _pickles_itself(kind: type[torch.Tensor]) -> bool:
    """Tell whether a class has ways of its own: to be pickled, to hold attributes, or to have no storage."""
    own = [base for base in kind.__mro__ if base not in torch.nn.Parameter.__mro__]
    ways = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__torch_dispatch__")
    return any(name in vars(base) for base in own for name in ways) or any(
        vars(base).get("__slots__") for base in own
    )


def _refuse_fake(_: torch.Tensor) -> Reduced:
    raise Unshareable("it is a fake tensor, which has no data", "Make it inside the cell.")


def _refuse_what_cannot_travel(tensor: torch.Tensor) -> None:
    if tensor.is_mkldnn:
        raise Unshareable("its layout is private to MKL-DNN", "Use {new}to_dense().")
    if tensor.layout is torch.strided and not tensor.is_nested:
        _refuse_without_memory(tensor)
    if tensor.is_quantized and not _has_quantizer(tensor):
        raise Unshareable(
            f"it is of {tensor.dtype} without a quantizer", "Make it with torch.quantize_per_tensor()."
        )


def _refuse_without_memory(tensor: torch.Tensor) -> None:
    if tensor.device.type == "meta":
        raise Unshareable("it is a meta tensor, which has no data", "Make it inside the cell.")
    if not torch._C._has_storage(tensor):  # noqa: SLF001  # the only way to see it
        raise Unshareable(
            "it belongs to a transform of torch.func, outside of which it has no data",
            "Use what the transform returns.",
        )
    if _reaches_beyond_storage(tensor):
        raise Unshareable(
            "its shape reaches beyond its storage, as a resize that failed leaves it", "Make it anew."
        )


def _has_quantizer(tensor: torch.Tensor) -> bool:
    try:
        tensor.qscheme()
    except RuntimeError:  # `torch.empty` of such a dtype has none
        return False
    return True


def _reaches_beyond_storage(tensor: torch.Tensor) -> bool:
    if tensor.numel() == 0 or tensor.dtype in _SMALLER_THAN_A_BYTE:
        return False
    layout = zip(tensor.shape, tensor.stride(), strict=True)
    last = tensor.storage_offset() + sum((length - 1) * stride for length, stride in layout)
    return (last + 1) * tensor.element_size() > tensor.untyped_storage().nbytes()


def _has_plain_strides(tensor: torch.Tensor) -> bool:
    """Tell whether a storage, a dtype, a shape and strides are all there is to a tensor's elements."""
    return tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_quantized
