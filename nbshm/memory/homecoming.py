"""Homecoming: the memory of values that a worker gives back, as the notebook's own."""

from __future__ import annotations

import ctypes
import errno
import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from nbshm.errors import NoRoom
from nbshm.jobs import CudaHandle, Parcel, Place, Places
from nbshm.machine.descriptor_limit import allow_descriptors, are_fewer_left_than
from nbshm.memory.buffers import Buffers
from nbshm.memory.loading import Memory
from nbshm.memory.ownership.address_space import SharedFile
from nbshm.memory.shared.limits import Room, addresses_left
from nbshm.memory.shared.regions import Region
from nbshm.memory.shared.segments import Segment, Segments

_SMALL = 2**20  # bytes: smaller segments of results are copied, so that kept results do not keep descriptors

_PLENTY = 200  # descriptors, to be left for the next runs when a result keeps one


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where a region lies for the workers, and where it lies for the notebook if that is elsewhere.

    `original` is the notebook's address of a region that was copied, or that lies in a file that others
    share; `back` if it is copied back at the end, and `held` what keeps it where it is until then.
    """

    region: Region
    home: Segment | SharedFile
    offset: int
    original: int | None = None
    back: bool = False
    held: Sequence[object] = ()


class Piece(NamedTuple):
    """A part of a region, from `begin` on, and where it is now."""

    begin: int
    address: int
    nbytes: int


class OwnMemory:
    """The notebook's memory, by where workers see it."""

    def __init__(self, buffers: Buffers, spots: Sequence[Spot]) -> None:
        self._buffers = buffers
        self._spots = sorted(spots, key=_position)
        self.cuda = buffers.cuda
        self._raw: dict[int, Any] = {}
        self.homes = list({spot.home.fd: spot.home for spot in spots}.values())
        numbers = {home.fd: number for number, home in enumerate(self.homes)}
        self.places = _places(buffers, spots, numbers)

    def at(self, place: Place) -> Memory:
        """Return the notebook's memory at a place in the segments of its run."""
        number = self._exact.get(place)
        original = None if number is None else self._buffers[number].keeper
        home = self.homes[place.segment]
        spot = self._spots[bisect_right(self._spots, (home.fd, place.offset), key=_position) - 1]
        if isinstance(home, Segment) and spot.original is None:
            return Memory(buffer=home.buffer, offset=place.offset, nbytes=place.nbytes, original=original)
        return Memory(
            buffer=self._raw_memory(spot),
            offset=place.offset - spot.offset,
            nbytes=place.nbytes,
            original=original,
        )

    def whereabouts(self, region: Region) -> list[Piece]:
        """Return where the memory of a region is now, in pieces: mostly in one.

        The notebook may have resized a storage meanwhile, or had torch move it (`share_memory_()`): away from
        an array over the same memory, say, which stays where it was.
        """
        buffers = [self._buffers[number] for number in region.numbers]
        storages = [
            Piece(
                begin=buffer.address - region.address,
                address=buffer.keeper.data_ptr(),
                nbytes=min(buffer.keeper.nbytes(), buffer.nbytes),
            )
            for buffer in buffers
            if buffer.kind == "storage"
        ]
        if len(buffers) == len(storages) == 1:
            return storages
        moved = [piece for piece in storages if piece.address != region.address + piece.begin]
        return [Piece(begin=0, address=region.address, nbytes=region.nbytes), *moved]

    @cached_property
    def _exact(self) -> dict[Place, int]:
        return {place: number for number, place in enumerate(self.places)}

    def _raw_memory(self, spot: Spot) -> Any:
        """Return a buffer over memory of the notebook's own, which keeps alive what it belongs to."""
        key = spot.region.address
        if key not in self._raw:
            whole, *_ = self.whereabouts(spot.region)
            raw: Any = (ctypes.c_char * whole.nbytes).from_address(whole.address)
            raw.keepers = [self._buffers[number].keeper for number in spot.region.numbers]
            self._raw[key] = raw
        return self._raw[key]


class Homecoming:
    """The loader for one parcel in the kernel; it owns the descriptors that came with the parcel."""

    def __init__(
        self,
        own: OwnMemory,
        spares: Sequence[Segment],
        parcel: Parcel,
        fds: Sequence[int],
        *,
        segments: Segments,
    ) -> None:
        self._own = own
        self._places = parcel.places
        self._cuda = parcel.cuda
        self._received = [*(spare.buffer for spare in spares), *_receive(parcel.segments, fds, segments)]
        segments.spares.expect_more(sum(parcel.segments) + self._written_in(spares))

    def memory(self, number: int, *, private: bool) -> Memory:  # noqa: ARG002  # a result has no private memory
        """Return the notebook's own memory, or what came with the parcel."""
        place = self._places[number]
        ahead = len(self._own.homes)
        if place.segment < ahead:
            return self._own.at(place)
        return Memory(buffer=self._received[place.segment - ahead], offset=place.offset, nbytes=place.nbytes)

    def cuda_storage(self, number: int) -> Any:
        """Return the notebook's own storage on a GPU, or a copy of what the worker has there."""
        place = self._cuda[number]
        if not isinstance(place, CudaHandle):
            return self._own.cuda[place]
        from nbshm.memory.tensors import cuda  # noqa: PLC0415  # imports torch

        return cuda.copy_of(place)

    def _written_in(self, spares: Sequence[Segment]) -> int:
        """Return the size of the spare segments that the parcel uses."""
        used = {place.segment - len(self._own.homes) for place in self._places}
        return sum(spare.nbytes for number, spare in enumerate(spares) if number in used)


def _receive(sizes: Sequence[int], fds: Sequence[int], segments: Segments) -> list[Any]:
    """Take over what a worker sent: big segments as they are, small ones as ordinary memory.

    Big ones too where descriptors are few: a notebook that keeps its results would use them up.

    Raises
    ------
    NoRoom
        This process may not map so much.

    """
    waiting = list(fds)
    try:
        return [
            _read(waiting.pop(0), nbytes)
            if nbytes < _SMALL or _are_descriptors_few()
            else segments.add(Segment.over(waiting.pop(0), nbytes)).buffer
            for nbytes in sizes
        ]
    except (OSError, MemoryError) as error:
        if isinstance(error, OSError) and error.errno != errno.ENOMEM:
            raise
        raise _no_room(sum(sizes)) from error
    finally:
        for fd in waiting:
            os.close(fd)


def _no_room(needed: int) -> NoRoom:
    room = addresses_left()
    if room is None:
        room = Room(nbytes=0, where="this system (Cannot allocate memory)", remedy="Give back less.")
    return NoRoom(what="a result", needed=needed, available=room.nbytes, where=room.where, remedy=room.remedy)


def _are_descriptors_few() -> bool:
    return are_fewer_left_than(_PLENTY) and allow_descriptors(_PLENTY) < _PLENTY


def _read(fd: int, nbytes: int) -> bytearray:
    try:
        content = bytearray(nbytes)
        left = memoryview(content)
        while left:  # one call reads 2 GiB at most
            left = left[os.preadv(fd, [left], nbytes - len(left)) :]
        return content
    finally:
        os.close(fd)


def _position(spot: Spot) -> tuple[int, int]:
    return spot.home.fd, spot.offset


def _places(buffers: Buffers, spots: Sequence[Spot], numbers: dict[int, int]) -> Places:
    places = [(0, 0, 0)] * len(buffers)  # each lies in one spot
    for spot in spots:
        segment, start = numbers[spot.home.fd], spot.offset - spot.region.address
        for number in spot.region.numbers:
            buffer = buffers[number]
            places[number] = (segment, start + buffer.address, buffer.nbytes)
    return Places(places)
