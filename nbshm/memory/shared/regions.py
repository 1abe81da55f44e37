"""Regions: ranges of addresses that overlap are one piece of memory, and must stay one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

Span: TypeAlias = tuple[int, int, int]
"""Address, size in bytes, and number of a buffer."""

ALIGNMENT = 64
"""Bytes: what a region's address is modulo this, its place in a segment is too."""

_ALONE = 8 * 2**20  # bytes: from this size on, a region's memory should be free as soon as the region is


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A contiguous piece of memory, and the numbers of the buffers in it."""

    address: int
    nbytes: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where regions go: for each the number of a new segment and the offset in it; and their sizes."""

    spots: tuple[tuple[int, int], ...]
    sizes: tuple[int, ...]


def merge(spans: Iterable[Span]) -> list[Region]:
    """Join spans that overlap (not those that merely touch) to regions, in the order of addresses."""
    regions: list[Region] = []
    numbers: list[int] = []
    start = end = 0
    for address, nbytes, number in sorted(spans):
        if numbers and address < end:
            end = max(end, address + nbytes)
        else:
            if numbers:
                regions.append(Region(address=start, nbytes=end - start, numbers=tuple(numbers)))
            start, end, numbers = address, address + nbytes, []
        numbers.append(number)
    if numbers:
        regions.append(Region(address=start, nbytes=end - start, numbers=tuple(numbers)))
    return regions


def lay_out(regions: Iterable[Region], *, largest: int | None = None, together: bool = False) -> Layout:
    """Assign a spot in a new segment to each region.

    Small regions share a segment, so that thousands of tensors take one descriptor; a big one has its own,
    unless all are to be kept `together`. No segment of several regions exceeds `largest` bytes. A region
    keeps its address modulo `ALIGNMENT`, and so the alignment of everything in it.
    """
    sizes: list[int] = []
    spots: list[tuple[int, int]] = []
    shared: int | None = None
    for region in regions:
        if region.nbytes >= _ALONE and not together:
            segment, offset = len(sizes), region.address % ALIGNMENT
            sizes.append(0)
        else:
            offset = _next_offset(0 if shared is None else sizes[shared], region)
            if shared is None or (largest is not None and offset + region.nbytes > largest):
                shared, offset = len(sizes), region.address % ALIGNMENT
                sizes.append(0)
            segment = shared
        spots.append((segment, offset))
        sizes[segment] = offset + region.nbytes
    return Layout(spots=tuple(spots), sizes=tuple(sizes))


def _next_offset(used: int, region: Region) -> int:
    return -(-used // ALIGNMENT) * ALIGNMENT + region.address % ALIGNMENT
