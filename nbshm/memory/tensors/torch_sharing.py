"""torch's own sharing of a tensor, as the notebook's code asks for it: by its methods, or by sending it.

torch moves the memory of a tensor when `share_memory_()` is called or the tensor is pickled for another
process, and frees the old memory under whoever looks at it: a numpy view, a DLPack consumer. And what lies in
a segment of ours it would move away from the workers. So whoever sees the memory is counted first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeAlias

import torch
from torch.multiprocessing import reductions

from nbshm.memory.buffers import Buffer
from nbshm.memory.ownership.threads import are_others_at_work
from nbshm.memory.shared.segments import Segment
from nbshm.memory.tensors.census import Census
from nbshm.memory.tensors.nested import reduce_nested
from nbshm.memory.tensors.reducer import rebuild_tensor
from nbshm.memory.tensors.sparse import reduce_sparse
from nbshm.memory.tensors.storages import can_move, keep
from nbshm.memory.tensors.torch_limits import NewStorages
from nbshm.replacing import Replacement

Reduced: TypeAlias = tuple[Any, ...]
Find: TypeAlias = Callable[[int, int], Segment | None]
"""Returns the segment that holds all of some memory, by address and size."""

_WORTH_A_WALK = 2**26  # bytes: where one tensor after the other comes, keeping the memory of less costs less
_KINDS = (torch.Tensor, torch.nn.Parameter)


class TorchSharing:
    """What stands before torch's methods and reducers of tensors, from `install` to `remove`."""

    def __init__(self, find: Find, storages: NewStorages) -> None:
        self._find = find
        self._storages = storages
        self._share_memory = _method("share_memory_", self.share)
        self._is_shared = _method("is_shared", self.is_shared)

    def install(self) -> None:
        """Take the place of torch's; doing it twice is fine."""
        for kind in _KINDS:
            ForkingPickler.register(kind, self.reduce)
        self._share_memory.install()
        self._is_shared.install()

    def remove(self) -> None:
        """Put torch's back."""
        for kind in _KINDS:
            ForkingPickler.register(kind, reductions.reduce_tensor)
        self._share_memory.remove()
        self._is_shared.remove()

    def reduce(self, tensor: torch.Tensor) -> Reduced:
        """See that the memory of a tensor can be handed over without harm, and reduce it as torch does."""
        self._move(tensor)
        if tensor.is_cuda and (tensor.is_leaf or not tensor.requires_grad):
            return _reduce_on_cuda(tensor)
        return reductions.reduce_tensor(tensor)  # type: ignore[no-any-return, no-untyped-call]  # torch's

    def share(self, tensor: torch.Tensor) -> torch.Tensor:
        """Do what `Tensor.share_memory_` does; what is shared, in a segment or by torch, stays as it is."""
        self._move(tensor)
        segment = self._segment_of(_storage_of(tensor))
        if segment is not None:
            segment.stay_shared()
        if self.is_shared(tensor):
            return tensor
        shared: torch.Tensor = self._share_memory.original(tensor)
        return shared

    def is_shared(self, tensor: torch.Tensor) -> bool:
        """Tell what `Tensor.is_shared` does; what lies in a segment is shared."""
        return self._segment_of(_storage_of(tensor)) is not None or bool(self._is_shared.original(tensor))

    def _segment_of(self, storage: torch.UntypedStorage | None) -> Segment | None:
        if storage is None or storage.device.type != "cpu" or storage.nbytes() == 0:
            return None
        return self._find(storage.data_ptr(), storage.nbytes())

    def _move(self, tensor: torch.Tensor) -> None:
        """Move the memory of a tensor to where torch would move it, and keep the old if anyone may see it.

        Whether a view of numpy's is alive can't be told here: our own callers hold the tensor too.
        """
        storage = _storage_of(tensor)
        if storage is None or not is_movable(storage) or self._segment_of(storage) is not None:
            return
        seen = Buffer(address=0, nbytes=0, kind="storage", keeper=storage, writeable=True, holders=[tensor])
        census = Census(met=[tensor], near=(), worth_a_walk=_WORTH_A_WALK)
        is_known = storage.resizable() and census.explains(seen)
        before = self._storages.move(storage)
        if not is_known or are_others_at_work():
            keep(before, storage)


def _method(name: str, function: Callable[[torch.Tensor], Any]) -> Replacement:
    """Return what stands in for a method of tensors."""

    @functools.wraps(getattr(torch.Tensor, name))
    def method(tensor: torch.Tensor) -> Any:  # a function, so that it binds as a method does
        return function(tensor)

    return Replacement(torch.Tensor, name, method)


def is_movable(storage: torch.UntypedStorage) -> bool:
    """Tell whether torch would move a storage that is shared, and whether it can be done with care."""
    return can_move() and storage.device.type == "cpu" and storage.nbytes() > 0 and not storage.is_shared()


def _reduce_on_cuda(tensor: torch.Tensor) -> Reduced:
    """Reduce a tensor to its storage or its parts, which are lent; else as torch does."""
    torch.utils.hooks.warn_if_has_hooks(tensor)
    if tensor.is_nested:
        return reduce_nested(tensor.detach())
    storage = _storage_of(tensor)
    if storage is None:
        return reduce_sparse(tensor.detach())
    layout = (tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
    return rebuild_tensor, (type(tensor), storage, *layout, tensor.requires_grad)


def _storage_of(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """Return the storage of a tensor; None if it has none of its own."""
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return None
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001  # a class must not see that it is looked at
        return tensor.untyped_storage() if torch._C._has_storage(tensor) else None  # noqa: SLF001  # sparse ones have none
