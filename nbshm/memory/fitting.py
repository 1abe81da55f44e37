"""Whether a run's memory fits, asked before anything is moved; if not, the answer names what is too big."""

from __future__ import annotations

from collections.abc import Sequence

from nbshm.errors import NoRoom
from nbshm.machine.descriptor_limit import allow_descriptors
from nbshm.memory.decisions import Copied, Moves
from nbshm.memory.ownership.address_space import resident
from nbshm.memory.ownership.names import NotebookNames
from nbshm.memory.shared import limits
from nbshm.memory.shared.regions import Layout, Region, lay_out
from nbshm.memory.shared.releasing import wait_until_released
from nbshm.memory.shared.segments import Segment, Segments
from nbshm.memory.shared.spares import Spares


def make_room(
    wanted: Sequence[Moves | Copied], *, names: NotebookNames, segments: Segments, reserved: int
) -> tuple[Layout, list[Segment]]:
    """Return where regions go, and the new segments for them, still empty.

    `reserved` descriptors are for others: if segments would need some of them, they are made fewer.

    Raises
    ------
    NoRoom
        They do not fit; nothing has been changed, and nothing is left of what was made.

    """
    if not wanted:
        return Layout(spots=(), sizes=()), []
    regions = [decision.region for decision in wanted]
    layout = _lay_out(regions, names, reserved, segments.spares)
    _check_memory(wanted, names, sum(layout.sizes), segments.spares)
    try:
        return layout, [segments.create(nbytes) for nbytes in layout.sizes]
    except OSError as error:
        needed = sum(layout.sizes)
        raise _no_room(
            regions,
            names,
            limits.Room(nbytes=0, where=f"this system ({error.strerror})", remedy="Use smaller pieces."),
            needed,
        ) from error


def _lay_out(regions: Sequence[Region], names: NotebookNames, reserved: int, spares: Spares) -> Layout:
    file_limit = limits.largest_file()
    largest = None if file_limit is None else file_limit.nbytes
    layout = lay_out(regions, largest=largest)
    wanted = len(layout.sizes) + reserved
    if allow_descriptors(wanted) < wanted:
        spares.clear()  # they have descriptors too
        layout = lay_out(regions, largest=largest, together=True)
    if file_limit is not None and max(layout.sizes) > file_limit.nbytes:
        biggest = max(region.nbytes for region in regions)
        raise _no_room(regions, names, file_limit, biggest)
    return layout


def _check_memory(
    wanted: Sequence[Moves | Copied], names: NotebookNames, nbytes: int, spares: Spares
) -> None:
    """Compare what `nbytes` of segments take with the memory and the addresses that are left.

    Where these are short, the spare pages are given back first, and what was moved before is free.
    """
    if _short_of(memory=nbytes, addresses=nbytes) is None:
        return
    spares.clear()
    wait_until_released()
    given_back = _given_back([each.region for each in wanted if isinstance(each, Moves)])
    short = _short_of(memory=nbytes - given_back, addresses=nbytes)
    if short is not None:
        raise _no_room([decision.region for decision in wanted], names, *short)


def _short_of(*, memory: int, addresses: int) -> tuple[limits.Room, int] | None:
    """Return what there is too little of, and how much is needed."""
    for room, needed in ((limits.memory_left(), memory), (limits.addresses_left(), addresses)):
        if room is not None and needed > room.nbytes:
            return room, needed
    return None


def _given_back(moved: Sequence[Region]) -> int:
    """Return how much of the old memory is free again before the last of these regions is moved.

    Not all: memory that nobody has written to (`numpy.zeros`) takes no room before it is moved.
    """
    there = [resident(region.address, region.nbytes) for region in moved]
    return sum(there) - max(there, default=0)


def _no_room(regions: Sequence[Region], names: NotebookNames, room: limits.Room, needed: int) -> NoRoom:
    biggest = max(regions, key=lambda region: region.nbytes)
    name = names.name_of(biggest.address, biggest.nbytes)
    what = f"'{name}'" if name else "the memory of a tensor or an array"
    remedy = f"{room.remedy} What nbshm.empty() makes, or np.memmap opens, is not copied."
    return NoRoom(what=what, needed=needed, available=room.nbytes, where=room.where, remedy=remedy)
