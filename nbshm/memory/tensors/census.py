"""Census: all that sees the memory of a storage, so that it is known whether the memory may be moved.

*Who keeps a storage alive.* The memory of a storage can be swapped in place: every tensor over it follows,
whatever holds the tensor. What does not follow is a raw pointer that somebody took: a numpy view, a DLPack
consumer. So before memory is moved, all that holds the storage must be known.

- A storage that lies over foreign memory is not moved: the owner of the memory would stay behind.
- A DLPack consumer holds a reference to a tensor in C++, so the counts of the storage and of its tensors show
  it when all tensors that Python knows have been accounted for. So does an autograd graph that has saved a
  tensor, which would follow, but can't be told apart. What is left of a graph after `backward()`, the node
  that adds to a parameter's grad, can: a parameter has one at most.
- A numpy view holds the Python object of a tensor. A storage that `Tensor.numpy()` was ever called on says so
  by not being resizable; whether a view is alive still, the references to its tensors tell: arrays are
  unknown to the garbage collector, so that the containers that it knows account for all references only if
  there is none.

What can't be explained is mirrored, which is right in any case.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import Any, TypeAlias

import torch
from torch.autograd.graph import get_gradient_edge

from nbshm.memory.buffers import Buffer
from nbshm.memory.tensors.cuda import is_pinned
from nbshm.memory.tensors.storages import can_move

Tensors: TypeAlias = dict[int, Any]
"""Tensors by id."""

_AT_ONCE = 100_000  # objects, whose references are listed at a time: a list of all could be as big as they


class Census:
    """The tensors that Python knows of, by storage; taken once, and only when it is needed.

    `met` are tensors over the storages that it will be asked about, `near` values that may be others. For
    storages from `worth_a_walk` bytes on, all objects of the process are looked at where nothing less helps.
    """

    def __init__(self, *, met: Iterable[Any], near: Iterable[Any], worth_a_walk: int) -> None:
        self._met = met
        self._near = near
        self._worth_a_walk = worth_a_walk
        self._grads: Counter[int] | None = None
        self._named: dict[int, Tensors] | None = None
        self._walked: dict[int, Tensors] | None = None
        self._references: Counter[int] | None = None

    def explains(self, buffer: Buffer) -> bool:
        """Tell whether known tensors are all that sees the memory of a storage, so that it may be moved."""
        storage: torch.UntypedStorage = buffer.keeper
        with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001  # a class must not see that it is looked at
            if not can_move() or storage.is_shared() or is_pinned(storage):
                return False
            if storage.resizable():
                return self._finds_all(storage, {id(tensor): tensor for tensor in buffer.holders})
            return (
                storage.nbytes() >= self._worth_a_walk
                and _was_allocated_by_torch(storage)
                and self._are_all(storage, self._tensors_anywhere(storage))
                and self._only_containers_hold(self._tensors_anywhere(storage))
            )

    def _finds_all(self, storage: torch.UntypedStorage, met: Tensors) -> bool:
        """Tell whether the tensors that were met, and others that are near, are all; else look everywhere."""
        if self._are_all(storage, met) or self._are_all(storage, met | self._tensors_by_name(storage)):
            return True
        return storage.nbytes() >= self._worth_a_walk and self._are_all(
            storage, self._tensors_anywhere(storage)
        )

    def _are_all(self, storage: torch.UntypedStorage, holders: Tensors) -> bool:
        """Tell whether these tensors account for all references to a storage and to one another.

        A storage is held by its Python object and by each tensor over it; a tensor by its Python object, by
        each view of it (torch keeps the root of a view, not what lies between) and by what it is the grad of.
        A sparse tensor stands for the part that it holds in C++; two may hold the same one. Of who holds a
        sparse or a nested tensor nobody sees where its memory lies.
        """
        bases = [tensor._base for tensor in holders.values() if tensor._base is not None]  # noqa: SLF001  # documented in torch's notes
        everyone = holders | {id(base): base for base in bases}
        if sum(tensor.layout is not torch.strided for tensor in everyone.values()) > 1:
            return False
        if torch._C._storage_Use_Count(storage._cdata) != 1 + len(everyone):  # noqa: SLF001  # the only way to see it
            return False
        if self._grads is None:
            self._grads = Counter(id(tensor.grad) for tensor in self._met if tensor.is_leaf)
        views, grads = Counter(map(id, bases)), self._grads
        return all(
            _is_held_by(1 + views[key] + grads[key], tensor)
            for key, tensor in everyone.items()
            if tensor.layout is torch.strided and not tensor.is_nested
        )

    def _tensors_by_name(self, storage: torch.UntypedStorage) -> Tensors:
        if self._named is None:
            self._named = _by_storage(self._near)
        return self._named.get(_identity(storage), {})

    def _tensors_anywhere(self, storage: torch.UntypedStorage) -> Tensors:
        if self._walked is None:
            self._walked = _by_storage(gc.get_objects())
        return self._walked.get(_identity(storage), {})

    def _only_containers_hold(self, tensors: Tensors) -> bool:
        """Tell whether containers that the garbage collector knows hold all references to some tensors."""
        if self._references is None:
            self._references = _count_references(self._walked or {})
        of_a_call, of_itself = sys.getrefcount(object()), _references_to_itself()
        return all(
            sys.getrefcount(tensors[key])
            == self._references[key] + of_a_call + of_itself * (tensors[key]._use_count() > 1)  # noqa: SLF001  # as in `_are_all`
            for key in tensors
        )


def _is_held_by(count: int, tensor: torch.Tensor) -> bool:
    """Tell whether so many references to a tensor, and the node that adds to its grad, are all there are."""
    more: int = tensor._use_count() - count  # type: ignore[attr-defined]  # noqa: SLF001  # documented in torch's notes
    if more != 1 or not (tensor.is_leaf and tensor.requires_grad) or _acts(tensor):
        return more == 0
    with torch.inference_mode(mode=False):
        edge = get_gradient_edge(tensor)  # from here on there is a node: if there was none, that is one more
    return bool(edge) and tensor._use_count() == count + 1  # type: ignore[attr-defined]  # noqa: SLF001  # as above


def _acts(tensor: torch.Tensor) -> bool:
    """Tell whether the class of a tensor runs code of its own when something is computed from it."""
    return type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


def _by_storage(values: Iterable[Any]) -> dict[int, Tensors]:
    """Sort the tensors among some values by their storage."""
    found: dict[int, Tensors] = {}
    for tensor in _tensors_among(list(values)):
        if torch._C._has_storage(tensor):  # noqa: SLF001  # sparse ones have none
            found.setdefault(_identity(tensor.untyped_storage()), {})[id(tensor)] = tensor
    return found


def _tensors_among(values: Sequence[Any]) -> Iterator[Any]:
    """Yield the tensors among values, of which there are a million, say: nothing runs in Python for each.

    Types are looked at, by their ids: `isinstance` asks an object for its `__class__`, and a set compares
    types with `==`; a lazy object acts on the one, a metaclass may on the other.
    """
    ids = list(map(id, map(type, values)))
    kinds = dict(zip(ids, map(type, values), strict=True))
    wanted = {key for key, kind in kinds.items() if issubclass(kind, torch.Tensor)}
    return compress(values, map(wanted.__contains__, ids))


def _count_references(tensors: dict[int, Tensors]) -> Counter[int]:
    """Count the references to each tensor that the garbage collector sees, those of `tensors` included."""
    wanted = frozenset(key for group in tensors.values() for key in group)
    objects = gc.get_objects()
    counts: Counter[int] = Counter()
    for start in range(0, len(objects), _AT_ONCE):
        referents = gc.get_referents(*objects[start : start + _AT_ONCE])
        counts.update(filter(wanted.__contains__, map(id, referents)))
    return counts


def _references_to_itself() -> int:
    """Measure how often a tensor that has a view refers to its own Python object: in newer torch, it does."""
    tensor = torch.empty(1, device="cpu")
    alone = sys.getrefcount(tensor)
    view = tensor[:]  # noqa: F841  # it is there, which is enough
    return sys.getrefcount(tensor) - alone


def _identity(storage: torch.UntypedStorage) -> int:
    return int(storage._cdata)  # noqa: SLF001  # the address of the C++ object, which torch's own cache uses too


def _was_allocated_by_torch(storage: torch.UntypedStorage) -> bool:
    """Tell whether the memory is of torch's own making, and not that of an array, say.

    Python can't see it. In C++ a storage tells who frees its memory; a new one tells what torch's own say.
    """
    owner = _owner(storage)
    return owner is not None and owner == _owner(torch.empty(1, device="cpu").untyped_storage())


def _owner(storage: torch.UntypedStorage) -> tuple[int, int] | None:
    """Read who frees the memory of a storage, with what, from its C++ object; None if that looks otherwise.

    It begins with the table of methods, the counts, the address of the memory, the function that frees it,
    and what that function is given: the memory itself, where nobody else owns it.
    """
    words = (ctypes.c_uint64 * 5).from_address(storage._cdata)  # noqa: SLF001  # as in `_identity`
    address, function, argument = words[2:]
    return (function, argument - address) if address == storage.data_ptr() else None
