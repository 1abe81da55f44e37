"""Whether a run's memory fits, asked before anything is moved; if not, the answer names what is too big."""

from __future__ import annotations

from collections.abc import Sequence

from nbshm.descriptor_limit import allow_descriptors
from nbshm.errors import NoRoom
from nbshm.memory import limits
from nbshm.memory.decisions import Copied, Moves
from nbshm.memory.names import NotebookNames
from nbshm.memory.regions import Layout, Region, lay_out
from nbshm.memory.segments import Segment, Segments
from nbshm.memory.spares import Spares

_DESCRIPTORS_OF_A_SEGMENT = 2  # ours, and the copy that Python's mmap keeps
_SPARE_DESCRIPTORS = 64  # for the run itself, and what else the kernel opens meanwhile


def make_room(
    wanted: Sequence[Moves | Copied], *, names: NotebookNames, segments: Segments
) -> tuple[Layout, list[Segment]]:
    """Return where regions go, and the new segments for them, still empty.

    Raises
    ------
    NoRoom
        They do not fit; nothing has been changed, and nothing is left of what was made.

    """
    if not wanted:
        return Layout(spots=(), sizes=()), []
    regions = [decision.region for decision in wanted]
    layout = _lay_out(regions, names)
    _check_memory(wanted, names, segments.spares)
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


def _lay_out(regions: Sequence[Region], names: NotebookNames) -> Layout:
    file_limit = limits.largest_file()
    largest = None if file_limit is None else file_limit.nbytes
    layout = lay_out(regions, largest=largest)
    wanted = _DESCRIPTORS_OF_A_SEGMENT * len(layout.sizes) + _SPARE_DESCRIPTORS
    if allow_descriptors(wanted) < wanted:
        layout = lay_out(regions, largest=largest, together=True)
    if file_limit is not None and max(layout.sizes) > file_limit.nbytes:
        biggest = max(region.nbytes for region in regions)
        raise _no_room(regions, names, file_limit, biggest)
    return layout


def _check_memory(wanted: Sequence[Moves | Copied], names: NotebookNames, spares: Spares) -> None:
    """Compare what is written at once with what is left: memory that is moved is freed piece by piece.

    Where it is short, the spare pages are given back first.
    """
    moved = max((decision.region.nbytes for decision in wanted if isinstance(decision, Moves)), default=0)
    copied = sum(decision.region.nbytes for decision in wanted if isinstance(decision, Copied))
    left = limits.memory_left()
    if left is not None and moved + copied > left.nbytes and spares.nbytes:
        spares.clear()
        left = limits.memory_left()
    if left is not None and moved + copied > left.nbytes:
        raise _no_room([decision.region for decision in wanted], names, left, moved + copied)


def _no_room(regions: Sequence[Region], names: NotebookNames, room: limits.Room, needed: int) -> NoRoom:
    biggest = max(regions, key=lambda region: region.nbytes)
    name = names.name_of(biggest.address, biggest.nbytes)
    what = f"'{name}'" if name else "the memory of a tensor or an array"
    return NoRoom(what=what, needed=needed, available=room.nbytes, where=room.where, remedy=room.remedy)
