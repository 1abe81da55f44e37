"""Storages of CPU tensors: how they travel, and how their memory is moved under them.

*Who keeps a storage alive.* The memory of a storage can be swapped in place: every tensor over it follows,
whatever holds the tensor. What does not follow is a raw pointer that somebody took: a numpy view, a DLPack
consumer. So before memory is moved, all that holds the storage must be known. A storage that `Tensor.numpy()`
was called on, or that lies over foreign memory, says so by not being resizable. A DLPack consumer holds a
reference to a tensor in C++, so the counts of the storage and of its tensors show it when all tensors that
Python knows have been accounted for; so does an autograd graph, which would follow, but can't be told apart.
What can't be explained is mirrored, which is right in any case.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any, TypeAlias

import torch

from nbshm.memory.buffers import Buffer, Buffers
from nbshm.memory.copying import fill
from nbshm.memory.loading import memory_of
from nbshm.memory.segments import Segment
from nbshm.refusals import Unsendable

Reduced: TypeAlias = tuple[Any, ...]

_WORTH_A_WALK = 2**20  # bytes: mirroring less costs less than looking at all objects of the process


def reduce_storage(storage: torch.UntypedStorage, buffers: Buffers, *, holder: Any = None) -> Reduced:
    """Reduce a storage to the number of a buffer; `holder` is the tensor that it was met in."""
    if storage.device.type != "cpu":
        raise Unsendable(f"it is a bare storage on {storage.device}", "Send a tensor over it.")
    if storage.nbytes() == 0:
        return rebuild_empty, ()
    number = buffers.add(
        address=storage.data_ptr(), nbytes=storage.nbytes(), kind="storage", keeper=storage, holder=holder
    )
    return rebuild_storage, (number,)


def rebuild_storage(number: int) -> torch.UntypedStorage:
    """Return the storage of a buffer: the original where it is known, else one over the same memory."""
    memory = memory_of(number)
    if isinstance(memory.original, torch.UntypedStorage):
        return memory.original
    return storage_over(memory.buffer, memory.offset, memory.nbytes)


def rebuild_empty() -> torch.UntypedStorage:
    """Make a storage without memory."""
    return torch.UntypedStorage(0)  # type: ignore[no-untyped-call]


def storage_over(buffer: Any, offset: int, nbytes: int) -> torch.UntypedStorage:
    """Make a storage over part of a buffer, which it keeps alive."""
    return torch.frombuffer(buffer, dtype=torch.uint8, count=nbytes, offset=offset).untyped_storage()


def move(storage: torch.UntypedStorage, segment: Segment, offset: int) -> None:
    """Move a storage's memory into a segment, in place; the old memory is freed."""
    place = storage_over(segment.buffer, offset, storage.nbytes())
    fill(segment, offset, source=storage.data_ptr(), nbytes=storage.nbytes())
    swap(storage, place)


def swap(storage: torch.UntypedStorage, other: torch.UntypedStorage) -> None:
    """Exchange the memory of two storages of one size, which only a private method of torch can do."""
    storage._swap_data_ptr_(other)  # type: ignore[attr-defined]  # there since 2.13; `can_move` asks for it


def can_move() -> bool:
    """Tell whether this torch can move a storage in place."""
    return hasattr(torch.UntypedStorage, "_swap_data_ptr_")


class Census:
    """The tensors that Python knows of, by storage; taken once, and only when it is needed."""

    def __init__(self, values: Iterable[Any]) -> None:
        self._near = values
        self._named: dict[int, dict[int, Any]] | None = None
        self._walked: dict[int, dict[int, Any]] | None = None

    def explains(self, buffer: Buffer) -> bool:
        """Tell whether known tensors are all that sees the memory of a storage, so that it may be moved."""
        storage: torch.UntypedStorage = buffer.keeper
        if not can_move() or not storage.resizable() or storage.is_shared() or _is_pinned(storage):
            return False
        holders = dict(buffer.holders)
        if _are_all(storage, holders):
            return True
        holders.update(self._tensors_by_name(storage))
        if _are_all(storage, holders):
            return True
        if storage.nbytes() < _WORTH_A_WALK:
            return False
        holders.update(self._tensors_anywhere(storage))
        return _are_all(storage, holders)

    def _tensors_by_name(self, storage: torch.UntypedStorage) -> dict[int, Any]:
        if self._named is None:
            self._named = _by_storage(self._near)
        return self._named.get(_identity(storage), {})

    def _tensors_anywhere(self, storage: torch.UntypedStorage) -> dict[int, Any]:
        if self._walked is None:
            self._walked = _by_storage(gc.get_objects())
        return self._walked.get(_identity(storage), {})


def _are_all(storage: torch.UntypedStorage, holders: dict[int, Any]) -> bool:
    """Tell whether these tensors account for all references to a storage and to one another.

    A storage is held by its Python object and by each tensor over it; a tensor by its Python object and by
    each view of it (torch keeps the root of a view, not the view in between).
    """
    bases = [tensor._base for tensor in holders.values() if tensor._base is not None]  # noqa: SLF001  # documented in torch's notes
    everyone = holders | {id(base): base for base in bases}
    if torch._C._storage_Use_Count(storage._cdata) != 1 + len(everyone):  # noqa: SLF001  # the only way to see it
        return False
    views = [id(base) for base in bases]
    return all(tensor._use_count() == 1 + views.count(key) for key, tensor in everyone.items())  # noqa: SLF001  # as above


def _by_storage(values: Iterable[Any]) -> dict[int, dict[int, Any]]:
    """Sort the tensors among some values by their storage.

    Their types are looked at, not `isinstance`: that asks an object for its `__class__`, and a lazy object
    acts on it.
    """
    found: dict[int, dict[int, Any]] = {}
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001  # a subclass must not see that it is looked at
        for value in values:
            if issubclass(type(value), torch.Tensor) and torch._C._has_storage(value):  # noqa: SLF001  # sparse ones have none
                found.setdefault(_identity(value.untyped_storage()), {})[id(value)] = value
    return found


def _identity(storage: torch.UntypedStorage) -> int:
    return int(storage._cdata)  # noqa: SLF001  # the address of the C++ object, which torch's own cache uses too


def _is_pinned(storage: torch.UntypedStorage) -> bool:
    """Tell whether memory is pinned for a device; asked only where one is in use, as asking starts it."""
    return bool(torch.cuda.is_initialized() and storage.is_pinned())  # type: ignore[no-untyped-call]
