"""Why memory can't be moved ahead of a cell, and what to do instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nbshm.errors import CannotSend
from nbshm.memory.buffers import Buffer, Buffers
from nbshm.memory.ownership.contents import pieces_of, tensors_and_arrays
from nbshm.memory.ownership.extents import overlapped
from nbshm.memory.ownership.holders import Holders
from nbshm.memory.ownership.kinds import is_array, is_plain_array
from nbshm.memory.ownership.names import Names, NotebookNames
from nbshm.memory.ownership.paths import levels
from nbshm.memory.ownership.reach import own_parts
from nbshm.memory.shared.regions import Region
from nbshm.parts import steps_to

_UNNAMED = "the value (unnamed)"
_TO_THE_CELL = "it to the parallel cell, which copies it in and back."


def cannot_move(
    region: Region,
    value: Any,
    buffers: Buffers,
    names: NotebookNames,
    known: Sequence[Names],
) -> CannotSend:
    """Say what of a value can't be moved, and why."""
    arrays = [part for part in tensors_and_arrays(value) if is_array(part) and _lies_in(region, part)]
    if arrays:
        reason, remedy = _about_arrays(arrays, value, known)
    else:
        reason, remedy = _about_storage(buffers[region.numbers[0]], value, known[0])
    path = _path(region, value, known[0]) or names.name_of(region.address, region.nbytes)
    return CannotSend(path or _UNNAMED, reason=reason, remedy=remedy, action="share")


def _path(region: Region, value: Any, namespace: Names) -> str | None:
    """Return the name of what lies in a region, or the way to it from the value; None if there is none."""
    found = [part for part in tensors_and_arrays(value) if _lies_in(region, part)]
    named = {id(each): name for name, each in reversed(next(levels(namespace)))}
    for part in found:
        name: str = named.get(id(part), "_")
        if not name.startswith("_"):
            return name
    steps = steps_to(found[0], value) if found else ""
    return f"{name_of(value, namespace)}{steps}" if steps else None


def _lies_in(region: Region, part: Any) -> bool:
    sought = [(region.address, region.address + region.nbytes)]
    return any(any(overlapped(sought, piece)) for piece in pieces_of(part))


def _about_arrays(arrays: list[Any], value: Any, known: Sequence[Names]) -> tuple[str, str]:
    """Return why arrays over one piece of memory can't be moved, and what to do."""
    array, holders = arrays[0], Holders(arrays, known)
    reason, holder = holders.in_words(array), holders.name_of_holder(array)
    if holder:
        return reason, f"Use nbshm.share({holder}), which moves it too."
    instead = _instead(array, value, holders)
    return reason, f"{instead}, or leave {_TO_THE_CELL}" if instead else f"Leave {_TO_THE_CELL}"


def _instead(array: Any, value: Any, holders: Holders) -> str:
    """Return what to share instead of an array in a value, if anything will do."""
    if not is_plain_array(array):
        return ""
    if array is value:
        return "Share its copy()"
    inside = {id(part) for part in own_parts(value)}
    within = [type(holder) for holder in holders.of(array) if id(holder) in inside]
    if tuple in within:
        return "Use a list in the place of the tuple"
    return "" if within else "Put its copy() there"


def _about_storage(buffer: Buffer, value: Any, namespace: Names) -> tuple[str, str]:
    """Return why a storage can't be moved, and what to do."""
    from nbshm.memory.tensors import graphs  # noqa: PLC0415  # imports torch, which is there

    named = graphs.names_of_graphs(buffer.holders, namespace)
    reason = graphs.why_storage_stays(buffer.keeper, named)
    if named and buffer.keeper.resizable():
        return (
            reason,
            f"Use `del {', '.join(named)}`, or call backward(), which frees the graph, and share it then.",
        )
    is_whole = any(holder is value for holder in buffer.holders)
    return reason, f"{'Share its clone()' if is_whole else 'Put its clone() there'}, or leave {_TO_THE_CELL}"


def name_of(value: Any, namespace: Names) -> str:
    """Return a name of a value, or words for one that has none."""
    names = (name for name, found in list(namespace.items()) if found is value and not name.startswith("_"))
    return next(names, _UNNAMED)
