"""A worker's values on their way back: pickled, with the memory that the kernel does not have yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nbshm.jobs import Parcel, Place, Places
from nbshm.memory.buffers import Buffers
from nbshm.memory.copying import fill
from nbshm.memory.mapping import Mapping
from nbshm.memory.regions import Region, lay_out, merge
from nbshm.memory.segments import Segment

Pickle = Callable[[Any, Buffers], bytes]

_MOST_WASTE = 2  # a spare segment may be twice as big as what is copied into it


def pack(
    value: Any, *, mapping: Mapping, pickle: Pickle, spare: int | None = None
) -> tuple[Parcel, tuple[Segment, ...]]:
    """Return a value as a parcel, and the new segments whose descriptors are to be sent beside it.

    `pickle(value, buffers)` notes memory in the buffers. What lies in a segment of the job is referred to;
    anything else is copied into one new segment, which can be dropped once its descriptor is sent, or into
    the `spare` one of the job's, whose pages have been touched before, if it is of about that size.
    """
    buffers = Buffers()
    pickled = pickle(value, buffers)
    places: dict[int, Place] = {}
    spans = []
    for number, buffer in enumerate(buffers):
        known = mapping.place_of(buffer.address, buffer.nbytes)
        if known is None:
            spans.append((buffer.address, buffer.nbytes, number))
        else:
            places[number] = known
    segments = _copy_out(merge(spans), buffers, places, mapping=mapping, spare=spare)
    return (
        Parcel(
            pickled=pickled,
            places=Places(places[number] for number in range(len(buffers))),
            segments=tuple(made.nbytes for made in segments),
            cuda=tuple(mapping.cuda_place_of(storage) for storage in buffers.cuda),
        ),
        segments,
    )


def _copy_out(
    regions: list[Region],
    buffers: Buffers,
    places: dict[int, Place],
    *,
    mapping: Mapping,
    spare: int | None,
) -> tuple[Segment, ...]:
    """Copy regions into one segment, and note where each buffer in them lies; return it if it is new."""
    if not regions:
        return ()
    layout = lay_out(regions, together=True)
    (nbytes,) = layout.sizes
    if spare is not None and nbytes <= mapping.size(spare) <= _MOST_WASTE * nbytes:
        number, segment, is_new = spare, mapping.segment(spare), False
        segment.pages.touched = True
        segment.pages.populate()
    else:
        number, segment, is_new = len(mapping), Segment.create(nbytes), True
    for region, (_, start) in zip(regions, layout.spots, strict=True):
        fill(segment, start, source=region.address, nbytes=region.nbytes)
        for member in region.numbers:
            buffer = buffers[member]
            offset = start + buffer.address - region.address
            places[member] = Place(segment=number, offset=offset, nbytes=buffer.nbytes)
    return (segment,) if is_new else ()
