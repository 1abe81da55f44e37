"""What `%shm_status` says: what is shared, how much room there is, what was left behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nbshm.machine.descriptor_limit import descriptors_in_words
from nbshm.memory.inventory import Entry, Inventory, take_inventory
from nbshm.memory.shared import leftovers, limits
from nbshm.words import bytes_in_words

if TYPE_CHECKING:
    from nbshm.session import Session

_HEAD = ("name", "kind", "shape", "size", "segment", "shared")


def overview(session: Session) -> list[str]:
    """Return lines about the memory that is shared now."""
    inventory = take_inventory(
        mappings=session.mappings(),
        sent=session.sent,
        mirrored=session.mirrored,
        lent=[piece for run in session.runs for piece in run.mirrored()],
        histories=_histories(session),
        segments=session.segments,
    )
    return [*_table(inventory.entries), *_totals(inventory), *_room(), *_left()]


def clean() -> str:
    """Remove what dead processes have left in /dev/shm, and say what that was."""
    removed = [left for left in leftovers.leftovers() if leftovers.remove(left)]
    if not removed:
        return "nothing of dead processes is left in /dev/shm"
    return f"removed {_in_words(removed)} from /dev/shm"


def _histories(session: Session) -> dict[str, Any]:
    """Return the values that are kept beside the person's names, by what keeps them."""
    out: Mapping[int, Any] = session.shell.user_ns["_oh"]
    kept: dict[str, Any] = {f"Out[{number}]": value for number, value in list(out.items())}
    return kept if session.last is None else {**kept, "nbshm.last": session.last.results}


def _table(entries: Sequence[Entry]) -> list[str]:
    if not entries:
        return ["no name of the notebook leads to shared memory"]
    rows = [_HEAD, *map(_row, entries)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _row(entry: Entry) -> tuple[str, ...]:
    shared = f"{entry.how}: {entry.why}" if entry.why else entry.how
    segment = f"fd {', '.join(map(str, entry.segments))}" if entry.segments else ""
    return entry.name, entry.kind, entry.shape, bytes_in_words(entry.nbytes), segment, shared


def _totals(inventory: Inventory) -> Iterator[str]:
    segments = f"{inventory.segments} segment{'' if inventory.segments == 1 else 's'}"
    spare = f", and {bytes_in_words(inventory.spare)} kept to be used again" if inventory.spare else ""
    yield ""
    yield f"{segments} with {bytes_in_words(inventory.nbytes)} of memory{spare}"
    for kept in inventory.kept:
        yield f"kept by {kept.by} alone: {bytes_in_words(kept.nbytes)}"


def _room() -> Iterator[str]:
    yield f"open descriptors: {descriptors_in_words()}"
    for room in (limits.memory_left(), limits.shared_memory_left()):
        if room is not None:
            yield f"left in {room.where}: {bytes_in_words(room.nbytes)}"


def _left() -> Iterator[str]:
    found = leftovers.leftovers()
    if found:
        yield f"left in /dev/shm by dead processes: {_in_words(found)}; %shm_status clean removes them"


def _in_words(found: Sequence[leftovers.Leftover]) -> str:
    files = "1 file" if len(found) == 1 else f"{len(found)} files"
    return f"{files} of {bytes_in_words(sum(left.nbytes for left in found))}"
