"""A worker's side of shared memory: the segments that it was handed, each mapped once."""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from nbshm.closing import Closing
from nbshm.jobs import CudaHandle, Place, Places, Spot
from nbshm.machine.descriptor_limit import allow_descriptors
from nbshm.memory.loading import Memory, loading
from nbshm.memory.shared.segments import RawBuffer, Segment, Segments

if TYPE_CHECKING:
    from nbshm.memory.masks import LentMask

_SPARE = 64  # descriptors for what the worker itself opens


class MappedSegments(Closing):
    """The segments of a job, mapped when something in them is first asked for.

    It owns the descriptors until it is closed, or a segment takes over its own. `segments` lists those that
    are mapped for sharing. Those numbered in `stay_shared` are shared with forked children as well.
    """

    def __init__(
        self,
        fds: Sequence[int],
        sizes: Sequence[int],
        *,
        stay_shared: Collection[int] = (),
        cuda: Sequence[CudaHandle] = (),
    ) -> None:
        self.segments = Segments()
        allow_descriptors(len(fds) + _SPARE)  # Python keeps one of its own of each private mapping
        self._fds = dict(enumerate(fds))
        self._sizes = tuple(sizes)
        self._stay_shared = stay_shared
        self._shared: dict[int, Segment] = {}
        self._numbers: dict[int, int] = {}
        self._private: dict[int, mmap.mmap] = {}
        self._cuda = tuple(cuda)
        self._lent_masks: list[LentMask] = []
        self._opened: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    def loading(self, places: Places) -> AbstractContextManager[None]:
        """Let values be unpickled whose buffers lie in those places."""
        return loading(_Placed(self, places), lent_masks=self._lent_masks)

    def shared(self, number: int) -> RawBuffer:
        """Return a segment that all processes write to."""
        return self.segment(number).buffer

    def size(self, number: int) -> int:
        """Return the size of a segment in bytes."""
        return self._sizes[number]

    def segment(self, number: int) -> Segment:
        """Return a segment, mapped for sharing."""
        if number not in self._shared:
            segment = Segment.over(self._fds.pop(number), self._sizes[number])
            if number in self._stay_shared:
                segment.stay_shared()
            self._shared[number] = self.segments.add(segment)
            self._numbers[segment.address] = number
        return self._shared[number]

    def private(self, number: int) -> mmap.mmap:
        """Return a segment's contents, as a copy that is made page by page when it is written to."""
        if number not in self._private:
            fd = self._shared[number].fd if number in self._shared else self._fds[number]
            self._private[number] = mmap.mmap(fd, self._sizes[number], access=mmap.ACCESS_COPY)
        return self._private[number]

    def place_of(self, address: int, nbytes: int) -> Place | None:
        """Return where memory lies in the segments that are shared, if it does."""
        segment = self.segments.find(address, nbytes)
        if segment is None or segment.address not in self._numbers:  # a worker may share more by itself
            return None
        return Place(segment=self._numbers[segment.address], offset=address - segment.address, nbytes=nbytes)

    def holds(self, storage: Any) -> bool:
        """Tell whether a storage is the notebook's, and so every rank's."""
        if storage.device.type == "cuda":
            return self._cuda_number_of(storage) is not None
        return (
            storage.device.type == "cpu" and self.place_of(storage.data_ptr(), storage.nbytes()) is not None
        )

    def spot_of(self, tensor: Any) -> Spot | None:
        """Return where a tensor begins in the notebook's memory, the same in each rank; None in other."""
        storage = tensor.untyped_storage()
        if not self.holds(storage):
            return None
        number = self._cuda_number_of(storage)
        if number is not None:
            return Spot(is_cuda=True, number=number, offset=tensor.storage_offset() * tensor.itemsize)
        place = self.place_of(tensor.data_ptr(), 0)
        return place and Spot(is_cuda=False, number=place.segment, offset=place.offset)

    def cuda_storage(self, number: int) -> Any:
        """Return one of the notebook's storages on GPUs; it is given up when nothing here uses it."""
        storage = self._opened.get(number)
        if storage is None:
            from nbshm.memory.tensors import cuda  # noqa: PLC0415  # imports torch

            storage = self._opened[number] = cuda.opened(self._cuda[number])
        return storage

    def cuda_place_of(self, storage: Any) -> int | CudaHandle:
        """Return which of the notebook's storages on GPUs it is, or what the notebook opens it by."""
        number = self._cuda_number_of(storage)
        if number is not None:
            return number
        from nbshm.memory.tensors import cuda  # noqa: PLC0415  # imports torch

        return cuda.lent(storage, cuda.counted_handle_of)[1]  # a clone is kept by the count alone

    def _cuda_number_of(self, storage: Any) -> int | None:
        return next((number for number, opened in self._opened.items() if opened is storage), None)

    def __len__(self) -> int:
        return len(self._sizes)

    def close(self) -> None:
        """Give up the descriptors, and masks that were lent; what is mapped stays as long as it is used."""
        while self._lent_masks:
            self._lent_masks.pop().note()
        while self._fds:
            os.close(self._fds.popitem()[1])
        self._shared.clear()
        self._private.clear()


class _Placed:
    """The loader of a worker: a number is a place in a segment."""

    def __init__(self, mapping: MappedSegments, places: Places) -> None:
        self._mapping = mapping
        self._places = places

    def memory(self, number: int, *, private: bool) -> Memory:
        place = self._places[number]
        mapping = self._mapping
        buffer = mapping.private(place.segment) if private else mapping.shared(place.segment)
        return Memory(buffer, place.offset, place.nbytes)

    def cuda_storage(self, number: int) -> Any:
        return self._mapping.cuda_storage(number)
