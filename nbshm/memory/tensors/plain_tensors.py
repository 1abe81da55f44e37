"""Plain tensors, of which a notebook may have thousands: reduced and rebuilt the quickest way.

A plain tensor is a place in a storage and nothing more: it has neither attributes, grad, hooks nor a class of
its own. All others go another way, which looks more closely (see `reducer.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

from nbshm.memory.buffers import Buffers
from nbshm.memory.loading import memory_of, storages_made
from nbshm.memory.tensors.storages import rebuild_storage

Layout: TypeAlias = tuple[torch.dtype, int, tuple[int, ...], tuple[int, ...]]
"""Element type, offset in the storage, shape and strides."""


_INTEGERS = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainTensors:
    """Reduces plain tensors for one pickle.

    Thousands have the same few layouts. Each is pickled once, as one object; with it is known how many bytes
    of a storage it reaches over, or 0 where there may be more to a tensor of that dtype: a quantizer, say.
    """

    buffers: Buffers
    _layouts: dict[Layout, tuple[Layout, int]] = field(default_factory=dict)

    def reduce(self, tensor: torch.Tensor) -> tuple[Any, ...] | None:
        """Reduce a tensor; None if it is more than plain, or can't be shared as it is."""
        if not _is_plain(tensor):
            return None
        layout = (tensor.dtype, int(tensor.storage_offset()), tensor.shape, tensor.stride())
        known, reach = self._layouts.get(layout) or self._learn(layout)
        storage = tensor.untyped_storage()
        nbytes = storage.nbytes()
        if not 0 < reach <= nbytes:
            return None
        number = self.buffers.add(
            address=storage.data_ptr(), nbytes=nbytes, kind="storage", keeper=storage, holder=tensor
        )
        return rebuild_plain, (number, known)

    def _learn(self, layout: Layout) -> tuple[Layout, int]:
        dtype, offset, shape, strides = layout
        known = (dtype, offset, tuple(shape), strides)
        last = offset + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
        reach = (last + 1) * dtype.itemsize if dtype.is_floating_point or dtype in _INTEGERS else 0
        self._layouts[layout] = found = (known, reach)
        return found


def _is_plain(tensor: torch.Tensor) -> bool:
    """Tell whether there is nothing to a tensor but its layout; what is asked, a plain one answers soon."""
    return not (
        tensor.layout is not torch.strided
        or not tensor.is_cpu
        or tensor.requires_grad
        or tensor.is_nested
        or tensor.is_neg()
        or tensor.grad is not None
        or tensor._backward_hooks  # noqa: SLF001  # where `register_hook` keeps them
        or getattr(tensor, "_post_accumulate_grad_hooks", None)  # there since torch 2.1
        or vars(tensor)
        or not torch._C._has_storage(tensor)  # noqa: SLF001  # the only way to see it
    )


def rebuild_plain(number: int, layout: Layout) -> torch.Tensor:
    """Make a tensor over the storage of a buffer."""
    dtype, offset, shape, strides = layout
    made = storages_made()
    if number not in made:
        memory = memory_of(number)
        count, rest = divmod(memory.nbytes, dtype.itemsize)
        if rest == 0 and memory.original is None:
            tensor = torch.frombuffer(memory.buffer, dtype=dtype, count=count, offset=memory.offset)
            made[number] = tensor.untyped_storage()
            is_all = shape == (count,) and strides == (1,) and offset == 0
            return tensor if is_all else tensor.as_strided_(shape, strides, offset)
    return torch.empty(0, dtype=dtype, device="cpu").set_(rebuild_storage(number), offset, shape, strides)
