"""Storages of tensors: how they travel, and how the memory of those on the CPU is moved under them."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from nbshm.memory.buffers import Buffers
from nbshm.memory.loading import Memory, cuda_storage_of, memory_of, storages_made
from nbshm.memory.shared.copying import fill
from nbshm.memory.shared.releasing import release
from nbshm.memory.shared.segments import Segment
from nbshm.memory.tensors.cuda import is_on_cuda
from nbshm.refusals import Unshareable

Reduced: TypeAlias = tuple[Any, ...]


def reduce_storage(storage: torch.UntypedStorage, buffers: Buffers, *, holder: Any = None) -> Reduced:
    """Reduce a storage to the number of a buffer; `holder` is the tensor that it was met in."""
    if storage.nbytes() == 0:
        return rebuild_empty, (str(storage.device),)
    if is_on_cuda(storage):
        return cuda_storage_of, (buffers.add_cuda(storage),)
    if storage.device.type != "cpu":
        raise Unshareable(f"it is on {storage.device}, whose memory can't be shared", "Send {its}cpu().")
    number = buffers.add(
        address=storage.data_ptr(), nbytes=storage.nbytes(), kind="storage", keeper=storage, holder=holder
    )
    return rebuild_storage, (number,)


def rebuild_storage(number: int) -> torch.UntypedStorage:
    """Return the storage of a buffer: the original where it is known, else one over the same memory."""
    made = storages_made()
    if number not in made:
        made[number] = _storage_of(memory_of(number))
    found: torch.UntypedStorage = made[number]
    return found


def _storage_of(memory: Memory) -> torch.UntypedStorage:
    if isinstance(memory.original, torch.UntypedStorage):
        return memory.original
    return storage_over(memory.buffer, memory.offset, memory.nbytes)


def rebuild_empty(device: str) -> torch.UntypedStorage:
    """Make a storage without memory."""
    return torch.UntypedStorage(0, device=device)  # type: ignore[no-untyped-call]


def storage_over(buffer: Any, offset: int, nbytes: int) -> torch.UntypedStorage:
    """Make a storage over part of a buffer, which it keeps alive."""
    return torch.frombuffer(buffer, dtype=torch.uint8, count=nbytes, offset=offset).untyped_storage()


def move(storage: torch.UntypedStorage, segment: Segment, offset: int, *, is_in_use: bool = False) -> None:
    """Move a storage's memory into a segment, in place; the old memory is freed if it is not in use."""
    place = storage_over(segment.buffer, offset, storage.nbytes())
    fill(segment, offset, source=storage.data_ptr(), nbytes=storage.nbytes())
    swap(storage, place)
    if is_in_use:
        keep(place, storage)
    else:
        release(place, address=place.data_ptr(), nbytes=place.nbytes())


def keep(before: torch.UntypedStorage, storage: torch.UntypedStorage) -> None:
    """Keep the old memory of a storage as long as the storage: somebody may look at it.

    What numpy made of a tensor holds that tensor, and so the storage; it goes on seeing the old memory.
    """
    storage.memory_before = before  # type: ignore[attr-defined]  # the object lives as long as the storage in C++


def held_in_place(storage: torch.UntypedStorage) -> object:
    """Return what keeps a storage from being moved while it is kept: a consumer that no census explains."""
    whole = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage)
    consumer: object = torch.utils.dlpack.to_dlpack(whole)  # type: ignore[attr-defined]  # it is of C++
    return consumer


def swap(storage: torch.UntypedStorage, other: torch.UntypedStorage) -> None:
    """Exchange the memory of two storages of one size, which only a private method of torch can do."""
    storage._swap_data_ptr_(other)  # type: ignore[attr-defined]  # there since 2.13; `can_move` asks for it


def can_move() -> bool:
    """Tell whether this torch can move a storage in place."""
    return hasattr(torch.UntypedStorage, "_swap_data_ptr_")
