"""Storages that the notebook's own code sends with torch.multiprocessing.

torch moves a storage to shared memory when it is pickled. For one that lies in a segment of ours that would
cut its ties to the workers and to the arrays over the same memory, silently; for one that numpy looks at,
it frees the memory under the view. So while nbshm is loaded, storages go through a reducer of ours, and
what has nothing to do with either through torch's.
"""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeAlias

import torch
from torch.multiprocessing import reductions

from nbshm.memory.segments import Segment, Segments
from nbshm.memory.storages import can_move, storage_over, swap

Reduced: TypeAlias = tuple[Any, ...]


class PlainTorch:
    """The reducer of storages in multiprocessing's own picklers, from `install` to `uninstall`."""

    def __init__(self, segments: Segments) -> None:
        self._segments = segments

    def install(self) -> None:
        """Take the place of torch's reducer; doing it twice is fine."""
        ForkingPickler.register(torch.UntypedStorage, self.reduce)

    def uninstall(self) -> None:
        """Put torch's reducer back."""
        ForkingPickler.register(torch.UntypedStorage, reductions.reduce_storage)

    def reduce(self, storage: torch.UntypedStorage) -> Reduced:
        """Reduce a storage to its place in a segment; else see that torch can move it without harm."""
        if storage.device.type == "cpu" and storage.nbytes() > 0:
            address, nbytes = storage.data_ptr(), storage.nbytes()
            segment = self._segments.find(address, nbytes)
            if segment is not None:
                return rebuild_in_segment, (segment, address - segment.address, nbytes)
            if can_move() and not storage.resizable() and not storage.is_shared():
                _share_and_keep(storage)
        return reductions.reduce_storage(storage)  # type: ignore[no-any-return, no-untyped-call]  # torch's


def rebuild_in_segment(segment: Segment, offset: int, nbytes: int) -> torch.UntypedStorage:
    """Make a storage over its place in a segment."""
    return storage_over(segment.buffer, offset, nbytes)


def _share_and_keep(storage: torch.UntypedStorage) -> None:
    """Move a storage to shared memory of torch's, and keep the old memory as long as the storage.

    What numpy made of a tensor holds that tensor, and so the storage; it goes on seeing the old memory.
    """
    shared = torch.UntypedStorage._new_shared(storage.nbytes())  # type: ignore[no-untyped-call]  # noqa: SLF001
    shared.copy_(storage)
    swap(storage, shared)
    storage.memory_before = shared  # type: ignore[attr-defined]  # the object lives as long as the storage in C++
