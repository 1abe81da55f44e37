"""What of the notebook's memory is shared now, by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, Literal, TypeAlias

from nbshm.given_names import IPYTHON_NAMES
from nbshm.memory.ownership.address_space import AddressSpace
from nbshm.memory.ownership.contents import arrays_of_libraries, of_masked, tensors_and_arrays
from nbshm.memory.ownership.extents import Range, address_span, memory_span, overlapped
from nbshm.memory.ownership.holders import Holders
from nbshm.memory.ownership.kinds import is_array
from nbshm.memory.ownership.names import NotebookNames
from nbshm.memory.shared.regions import merge
from nbshm.memory.shared.segments import Segments

How: TypeAlias = Literal["moved", "mirrored", "snapshot", "by CUDA", "by a file"]

Part: TypeAlias = tuple[Any, Any]
"""A tensor or an array, and what it consists of that has memory: itself, or a part of a sparse tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is shared in one way under one name; `why` is a clause, for a mirror.

    `segments` are descriptors. `shape` is that of a tensor or an array, else how many there are.
    """

    name: str
    kind: str
    shape: str
    nbytes: int
    how: How
    why: str = ""
    segments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Segments that no name of the person's leads to, and what keeps them: `Out[5]`, `nbshm.last`."""

    by: str
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All that is shared by name, and what is kept without one; `nbytes` is what there is of it in memory."""

    entries: tuple[Entry, ...]
    kept: tuple[Kept, ...]
    segments: int
    nbytes: int
    spare: int


def take_inventory(
    *,
    mappings: Sequence[MutableMapping[Any, Any]],
    sent: frozenset[str],
    mirrored: Sequence[Range],
    lent: Sequence[Range],
    histories: Mapping[str, Any],
    segments: Segments,
) -> Inventory:
    """List what is shared under the names of the first mapping, the notebook's namespace.

    `sent` are the names that the last run was given, `mirrored` the memory that was copied in for it, and
    `lent` what runs that are alive will write to when they end. `histories` are values by what keeps them
    beside the person's names, asked in this order.
    """
    with AddressSpace() as space:
        # The names first: whatever holds an array later counts as a holder.
        look = _Look(
            namespace=mappings[0],
            names=NotebookNames(*mappings),
            sent=sent,
            mirrored=sorted(mirrored),
            lent=sorted(lent),
            segments=segments,
            space=space,
        )
        entries = [entry for name, value in _named(mappings[0]) for entry in look.entries(name, value)]
    told = tuple(_with_holders(entries, look.held, mappings))
    seen = {fd for entry in told for fd in entry.segments}
    return Inventory(
        entries=told,
        kept=tuple(_kept(segments, seen, histories)),
        segments=len(segments),
        nbytes=sum(segment.pages.resident for segment in segments),
        spare=segments.spares.nbytes,
    )


@dataclass(slots=True, kw_only=True)
class _Look:
    """Looks at one name after the other; `held` are arrays whose holders are to be found."""

    namespace: Mapping[Any, Any]
    names: NotebookNames
    sent: frozenset[str]
    mirrored: Sequence[Range]
    lent: Sequence[Range]
    segments: Segments
    space: AddressSpace
    held: list[Any] = field(default_factory=list)

    def entries(self, name: str, value: Any) -> Iterator[Entry]:
        """Yield what is shared under a name."""
        groups: dict[How, list[Part]] = {}
        for part in tensors_and_arrays(value):
            for piece in _pieces(part):
                how = self._how(name, piece)
                if how is not None:
                    groups.setdefault(how, []).append((part, piece))
        for how, parts in groups.items():
            yield self._entry(name, value, how, parts)
        snapshots = arrays_of_libraries(value) if name in self.sent else []
        if snapshots:
            yield _entry(name, value, "snapshot", [(array, array) for array in snapshots])

    def _how(self, name: str, part: Any) -> How | None:
        if not is_array(part) and _is_handed_over_by_cuda(part):
            return "by CUDA"
        span = memory_span(part)
        if span is None or span[1] == 0:
            return None
        if self.segments.find(*span) is not None:
            return "moved"
        if self._is_mirrored(name, part):
            return "mirrored"
        return None if self.space.shared_file(*span) is None else "by a file"

    def _is_mirrored(self, name: str, part: Any) -> bool:
        """Tell whether it is now, or was for the last run and would be again."""
        if any(overlapped(self.lent, part)):
            return True
        was_mirrored = name in self.sent and any(overlapped(self.mirrored, part))
        return was_mirrored and not (is_array(part) and self.names.family_of(part))

    def _entry(self, name: str, value: Any, how: How, parts: list[Part]) -> Entry:
        entry, of_memory = _entry(name, value, how, parts), [piece for _, piece in parts]
        if how == "moved":
            found = [self.segments.find(*span) for span in map(memory_span, of_memory) if span is not None]
            fds = sorted({segment.fd for segment in found if segment is not None})
            return replace(entry, segments=tuple(fds))
        if how == "mirrored" and is_array(of_memory[0]):
            self.held.append(of_memory[0])
        elif how == "mirrored":
            return replace(entry, why=self._why_storage_stays(of_memory))
        return entry

    def _why_storage_stays(self, parts: list[Any]) -> str:
        from nbshm.memory.tensors import graphs  # noqa: PLC0415  # imports torch, which is there

        named = graphs.names_of_graphs(parts, self.namespace)
        return graphs.why_storage_stays(parts[0].untyped_storage(), named)


def _entry(name: str, value: Any, how: How, parts: Sequence[Part]) -> Entry:
    wholes = {id(whole): whole for whole, _ in parts}
    spans = [span for span in (address_span(piece) for _, piece in parts) if span is not None]
    regions = merge((address, nbytes, number) for number, (address, nbytes) in enumerate(spans))
    kind, shape = _kind_and_shape(value) if id(value) in wholes else _contents(value, wholes.values())
    return Entry(name=name, kind=kind, shape=shape, nbytes=sum(each.nbytes for each in regions), how=how)


def _kind_and_shape(value: Any) -> tuple[str, str]:
    if is_array(value):
        return f"array {value.dtype}", " x ".join(map(str, value.shape)) or "()"
    from nbshm.memory.tensors import appearances  # noqa: PLC0415  # imports torch, which is there

    return appearances.kind_and_shape(value)


def _contents(value: Any, parts: Collection[Any]) -> tuple[str, str]:
    arrays = sum(map(is_array, parts))
    counts = [_counted(len(parts) - arrays, "tensor"), _counted(arrays, "array")]
    kind = "class" if issubclass(type(value), type) else type(value).__qualname__
    return kind, ", ".join(count for count in counts if count)


def _pieces(part: Any) -> Sequence[Any]:
    if is_array(part):
        return [part, *of_masked(part)]
    from nbshm.memory.tensors import appearances  # noqa: PLC0415  # as above

    return appearances.pieces(part)


def _is_handed_over_by_cuda(tensor: Any) -> bool:
    from nbshm.memory.tensors import appearances  # noqa: PLC0415  # as above

    return appearances.is_handed_over_by_cuda(tensor)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}" if count else ""


def _named(namespace: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what the person has named."""
    for name, value in list(namespace.items()):
        is_own = isinstance(name, str) and not name.startswith("_") and name not in IPYTHON_NAMES
        if is_own and not issubclass(type(value), ModuleType):
            yield name, value


def _with_holders(
    entries: Sequence[Entry], mirrored: Sequence[Any], mappings: Sequence[Mapping[Any, Any]]
) -> Iterator[Entry]:
    """Say of mirrored arrays, which are in the order of their entries, who holds them."""
    holders = Holders(mirrored, mappings) if mirrored else None
    arrays = iter(mirrored)
    for entry in entries:
        unexplained = entry.how == "mirrored" and not entry.why
        if unexplained and holders is not None:
            array = next(arrays)
            why, holder = holders.in_words(array, told_of=entry.name), holders.name_of_holder(array)
            yield replace(entry, why=f"{why}; nbshm.share({holder}) moves it" if holder else why)
        else:
            yield entry


def _kept(segments: Segments, named: set[int], histories: Mapping[str, Any]) -> Iterator[Kept]:
    """Yield the segments that no name leads to, by what keeps them."""
    left = {segment.fd: segment.pages.nbytes for segment in segments if segment.fd not in named}
    for by, value in histories.items():
        if not left:
            return
        parts = (piece for part in tensors_and_arrays(value) for piece in _pieces(part))
        spans = [span for span in map(memory_span, parts) if span is not None]
        found = {segment.fd for segment in (segments.find(*span) for span in spans) if segment is not None}
        nbytes = sum(left.pop(fd) for fd in found & left.keys())
        if nbytes:
            yield Kept(by=by, nbytes=nbytes)
    if left:
        yield Kept(by="objects that no name leads to", nbytes=sum(left.values()))
