"""The notebook's names for arrays: whether an array can be moved, and how its names follow it.

numpy has no means to move an array's memory under it. So an array is moved by binding its names to a new
one, which is right only if those names are all there is: anything else that holds the array, or a view of
it, would stay behind.
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from nbshm.memory.ownership.bases import chain, is_link, root
from nbshm.memory.ownership.extents import Range, address_of_first, extent
from nbshm.memory.ownership.paths import names_of

Names: TypeAlias = MutableMapping[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """One name, in the namespace or in a history, that is bound to an array."""

    names: Names
    name: Any


@dataclass(slots=True, kw_only=True)
class Family:
    """An array that owns its memory, and its views: members by id, each with its names, if it has any.

    What links a view to the array is a member, too.
    """

    owner: Any
    members: dict[int, Any]
    bindings: dict[int, list[Binding]] = field(default_factory=dict)

    @property
    def address(self) -> int:
        """Where the memory begins."""
        return address_of_first(self.owner)

    @property
    def nbytes(self) -> int:
        """How much memory it is: an owner has no gaps."""
        return int(self.owner.nbytes)

    def rebind(self, replacements: dict[int, Any]) -> None:
        """Bind every name of a member to its replacement, where it is bound to that member still.

        One update for each mapping, which an interrupt can't divide: views never come apart. The family gives
        up its members, so that the old memory can be freed.
        """
        changes: dict[int, tuple[Names, dict[Any, Any]]] = {}
        for member, bindings in self.bindings.items():
            for binding in bindings:
                if binding.names.get(binding.name) is self.members[member]:
                    _, change = changes.setdefault(id(binding.names), (binding.names, {}))
                    change[binding.name] = replacements[member]
        for names, change in changes.values():
            names.update(change)
        self.owner = None
        self.members.clear()
        self.bindings.clear()


class NotebookNames:
    """The names of the notebook as they are when a run begins, before anything of nbshm holds their values.

    `namespace` is the notebook's, `histories` are other mappings in which IPython keeps values: `Out`, the
    attributes of the last result and of the displayhook. Made early, because it counts references: what a
    pickler has in its memo later would look like a holder of the notebook's.
    """

    def __init__(self, namespace: Names, *histories: Names) -> None:
        self._namespace = namespace
        self._families: dict[int, Family] = {}
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            families = _families((namespace, *histories), numpy.ndarray)
            baseline = _baseline(numpy)
            self._families = {id(family.owner): family for family in families if _holds_all(family, baseline)}

    def family_of(self, array: Any) -> Family | None:
        """Return the family that an array belongs to, if names are all that holds it."""
        return self._families.get(id(root(array, lambda base: type(base) is type(array))))

    def values(self) -> Iterator[Any]:
        """Yield the values of the namespace."""
        yield from list(self._namespace.values())

    def name_of(self, address: int, nbytes: int) -> str | None:
        """Return the name through which memory is reached: the nearest, IPython's own last."""
        return self.names_of([(address, address + nbytes)])[0]

    def names_of(self, ranges: Sequence[Range]) -> list[str | None]:
        """Return the names through which pieces of memory, which don't overlap, are reached."""
        return names_of(self._namespace, ranges)


def _families(mappings: Iterable[Names], ndarray: type) -> list[Family]:
    """Group the arrays that have names by the array that owns their memory."""
    families: dict[int, Family] = {}
    for names in mappings:
        for name, value in list(names.items()):
            if type(value) is ndarray:
                views = chain(value, lambda base: type(base) is ndarray)
                family = families.setdefault(id(views[-1]), Family(owner=views[-1], members={}))
                family.members.update((id(view), view) for view in views)
                family.bindings.setdefault(id(value), []).append(Binding(names=names, name=name))
    return list(families.values())


def _holds_all(family: Family, baseline: int) -> bool:
    """Tell whether names, and being the base of another member, explain all references to the members."""
    if not _owns_plain_memory(family.owner) or _reaches_beyond(family):
        return False
    bases = Counter(id(member.base) for member in family.members.values())
    explained = {
        member: baseline + len(family.bindings.get(member, ())) + bases[member] for member in family.members
    }
    explained[id(family.owner)] += 1  # the family itself
    return all(_references(family.members, member) == count for member, count in explained.items())


def _owns_plain_memory(owner: Any) -> bool:
    return (
        owner.base is None
        and owner.flags.owndata
        and not owner.dtype.hasobject
        and 0 < owner.nbytes == extent(owner)[1]
        and extent(owner)[0] == address_of_first(owner)
        and not weakref.getweakrefcount(owner)
    )


def _reaches_beyond(family: Family) -> bool:
    """Tell whether a view, which numpy was told the strides of, has memory that is not the array's."""
    begin, end = family.address, family.address + family.nbytes
    spans = [extent(member) for member in family.members.values() if is_link(member.base)]
    return any(nbytes and not begin <= address <= address + nbytes <= end for address, nbytes in spans)


def _references(members: dict[int, Any], member: int) -> int:
    return sys.getrefcount(members[member])


def _baseline(numpy: Any) -> int:
    """Measure how many references our own counting adds; Python versions differ in this."""
    array = numpy.empty(0)
    members = {id(array): array}
    key = id(array)
    del array
    return _references(members, key)
