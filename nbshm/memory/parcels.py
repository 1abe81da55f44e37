"""A worker's values on their way back: pickled, with the memory that the kernel does not have yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nbshm.jobs import Parcel, Place, Places
from nbshm.memory.buffers import Buffers
from nbshm.memory.mapping import MappedSegments
from nbshm.memory.shared.copying import fill, map_touched
from nbshm.memory.shared.regions import Region, Span, lay_out, merge
from nbshm.memory.shared.segments import Segment

Pickle = Callable[[Any, Buffers], bytes]

_MOST_WASTE = 2  # a segment may be twice as big as what lies in it
_WORTH_SENDING = 2**20  # bytes: the kernel copies what is smaller
_MOST_SENT = 16  # each is a descriptor that the notebook keeps


def pack(
    value: Any, *, mapping: MappedSegments, pickle: Pickle, spare: int | None = None
) -> tuple[Parcel, tuple[Segment, ...]]:
    """Return a value as a parcel, and the new segments whose descriptors are to be sent beside it.

    `pickle(value, buffers)` notes memory in the buffers. What lies in a segment of the job is referred to; a
    segment that this worker has made itself, and that nobody else sees, is sent on. Anything else is copied
    into one new segment, which can be dropped once its descriptor is sent, or into the `spare` one of the
    job's, whose pages have been touched before, if it is of about that size.
    """
    buffers = Buffers()
    pickled = pickle(value, buffers)
    places: dict[int, Place] = {}
    unknown: list[Span] = []
    for number, buffer in enumerate(buffers):
        known = mapping.place_of(buffer.address, buffer.nbytes)
        if known is None:
            unknown.append((buffer.address, buffer.nbytes, number))
        else:
            places[number] = known
    sent = _send_on(unknown, places, mapping)
    rest = merge(span for span in unknown if span[2] not in places)
    made = _copy_out(rest, buffers, places, mapping=mapping, number=len(mapping) + len(sent), spare=spare)
    segments = (*sent, *made)
    return (
        Parcel(
            pickled=pickled,
            places=Places(places[number] for number in range(len(buffers))),
            segments=tuple(segment.nbytes for segment in segments),
            cuda=tuple(mapping.cuda_place_of(storage) for storage in buffers.cuda),
        ),
        segments,
    )


def _send_on(spans: list[Span], places: dict[int, Place], mapping: MappedSegments) -> list[Segment]:
    """Note where memory lies in big segments of this worker's own; return those that are used enough."""
    found: dict[int, tuple[Segment, list[Span]]] = {}
    for span in spans:
        segment = mapping.segments.find(*span[:2])
        if segment is not None and segment.nbytes >= _WORTH_SENDING and not segment.may_be_seen_by_others:
            found.setdefault(segment.address, (segment, []))[1].append(span)
    sent: list[Segment] = []
    for segment, inside in found.values():
        used = sum(region.nbytes for region in merge(inside))
        if len(sent) < _MOST_SENT and used * _MOST_WASTE >= segment.nbytes:
            for address, nbytes, number in inside:
                offset = address - segment.address
                places[number] = Place(segment=len(mapping) + len(sent), offset=offset, nbytes=nbytes)
            sent.append(segment)
    return sent


def _copy_out(
    regions: list[Region],
    buffers: Buffers,
    places: dict[int, Place],
    *,
    mapping: MappedSegments,
    number: int,
    spare: int | None,
) -> tuple[Segment, ...]:
    """Copy regions into one segment, and note where each buffer in them lies; return it if it is new.

    A new one is the segment of that number.
    """
    if not regions:
        return ()
    layout = lay_out(regions, together=True)
    (nbytes,) = layout.sizes
    if spare is not None and nbytes <= mapping.size(spare) <= _MOST_WASTE * nbytes:
        number, segment, is_new = spare, mapping.segment(spare), False
        map_touched(segment.pages)
    else:
        segment, is_new = Segment.create(nbytes), True
    for region, (_, start) in zip(regions, layout.spots, strict=True):
        fill(segment, start, source=region.address, nbytes=region.nbytes)
        for member in region.numbers:
            buffer = buffers[member]
            offset = start + buffer.address - region.address
            places[member] = Place(segment=number, offset=offset, nbytes=buffer.nbytes)
    return (segment,) if is_new else ()
