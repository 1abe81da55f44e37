"""What becomes of each piece of the notebook's memory when a run shares it: the decision, nothing done yet.

lies in a segment of ours already          ─ stays
named arrays that nothing else holds       ─ moves: their names are bound to arrays in a segment
a storage that only known tensors see      ─ moves, in place
shared already by torch, a file, ...       ─ stays: its file is handed over
anything else                              ─ copied in, and back at the end: a mirror
a snapshot                                 ─ copied in
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias

from nbshm.memory.buffers import Buffers
from nbshm.memory.ownership.address_space import AddressSpace, SharedFile
from nbshm.memory.ownership.names import Family, NotebookNames
from nbshm.memory.ownership.threads import are_others_at_work
from nbshm.memory.shared.regions import Region, Span, merge
from nbshm.memory.shared.segments import Segment, Segments

if TYPE_CHECKING:
    from nbshm.memory.tensors.census import Census

_WORTH_A_WALK = 2**20  # bytes: mirroring a tensor of less costs less than looking at all objects


@dataclass(frozen=True, slots=True, kw_only=True)
class Stays:
    """It lies in shared memory already: in a segment, or in a file that others share."""

    region: Region
    home: Segment | SharedFile
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """It goes to a segment for good."""

    region: Region
    move: Callable[[Segment, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """It is copied into a segment; `back` if what workers write there is copied back at the end."""

    region: Region
    back: bool


Decision: TypeAlias = Stays | Moves | Copied


def decide(
    buffers: Buffers,
    *,
    names: NotebookNames,
    segments: Segments,
    space: AddressSpace,
    worth_a_walk: int = _WORTH_A_WALK,
) -> list[Decision]:
    """Decide about all memory in the buffers.

    For storages from `worth_a_walk` bytes on, all objects of the process are looked at if need be.
    """
    return _Judge(buffers, names=names, segments=segments, space=space, worth_a_walk=worth_a_walk).decide()


class _Judge:
    """Looks at each region once; what is dear to find out, it finds out when it is first needed."""

    def __init__(
        self,
        buffers: Buffers,
        *,
        names: NotebookNames,
        segments: Segments,
        space: AddressSpace,
        worth_a_walk: int,
    ) -> None:
        self._buffers = buffers
        self._names = names
        self._segments = segments
        self._space = space
        self._worth_a_walk = worth_a_walk
        self._families = _families(buffers, names)

    def decide(self) -> list[Decision]:
        staying, others = self._in_segments()
        shared = merge(self._span(number) for number in others if self._buffers[number].kind != "snapshot")
        snapshots = merge(self._span(number) for number in others if self._buffers[number].kind == "snapshot")
        return [
            *staying,
            *(self._about(region) for region in shared),
            *(Copied(region=region, back=False) for region in snapshots),
        ]

    def _in_segments(self) -> tuple[list[Decision], list[int]]:
        """Decide about what lies in segments of ours already, and return the numbers of the rest.

        All that lies in one segment is one region: it may be tens of thousands of tensors, in each run.
        """
        inside: dict[int, tuple[Segment, list[int]]] = {}
        rest: list[int] = []
        segment: Segment | None = None
        for number, buffer in enumerate(self._buffers):
            if segment is None or not segment.holds(buffer.address, buffer.nbytes):
                segment = self._segments.find(buffer.address, buffer.nbytes)
            if segment is None or buffer.kind == "snapshot":
                rest.append(number)
            else:
                inside.setdefault(segment.address, (segment, []))[1].append(number)
        return [_staying(*found) for found in inside.values()], rest

    def _span(self, number: int) -> Span:
        """Return the memory that a buffer takes with it: all of its family's, where that can move."""
        family = self._families.get(number)
        if family is None:
            return self._buffers[number].address, self._buffers[number].nbytes, number
        return family.address, family.nbytes, number

    def _about(self, region: Region) -> Decision:
        move = self._move_of(region)
        if move is not None:
            return Moves(region=region, move=move)
        file = self._space.shared_file(region.address, region.nbytes)
        if file is not None:
            return Stays(region=region, home=file[0], offset=file[1])
        return Copied(region=region, back=self._is_written(region))

    def _move_of(self, region: Region) -> Callable[[Segment, int], None] | None:
        """Return how a region is moved, if it can be."""
        family, *others = (self._families.get(number) for number in region.numbers)
        if family is not None and all(other is family for other in others):
            from nbshm.memory import arrays  # noqa: PLC0415  # imports numpy, which is there if an array is

            return partial(arrays.move, family)
        only = self._buffers[region.numbers[0]]
        if len(region.numbers) == 1 and only.kind == "storage" and self._census.explains(only):
            from nbshm.memory.tensors import storages  # noqa: PLC0415  # imports torch, which is there if a storage is

            return partial(storages.move, only.keeper, is_in_use=self._is_in_use)
        return None

    @cached_property
    def _census(self) -> Census:
        from nbshm.memory.tensors.census import Census  # noqa: PLC0415  # imports torch, which is there if a storage is

        met = (tensor for buffer in self._buffers for tensor in buffer.holders)
        return Census(met=met, near=self._names.values(), worth_a_walk=self._worth_a_walk)

    @cached_property
    def _is_in_use(self) -> bool:
        return are_others_at_work()

    def _is_written(self, region: Region) -> bool:
        may_write = any(self._buffers[number].writeable for number in region.numbers)
        return may_write and self._space.is_writeable(region.address, region.nbytes)


def _staying(segment: Segment, numbers: list[int]) -> Stays:
    region = Region(address=segment.address, nbytes=segment.nbytes, numbers=tuple(numbers))
    return Stays(region=region, home=segment, offset=0)


def _families(buffers: Buffers, names: NotebookNames) -> dict[int, Family]:
    """Return the families of arrays that can move, by the numbers of their members' buffers."""
    found = {
        number: names.family_of(buffer.keeper)
        for number, buffer in enumerate(buffers)
        if buffer.kind == "array"
    }
    return {number: family for number, family in found.items() if family is not None}
