"""The pickler for a run's way out: it notes all memory, and which arrays are the notebook's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from nbshm.memory.buffers import Buffers
from nbshm.memory.generators import is_generator, is_generator_kind, without_those_inside
from nbshm.memory.ownership.kinds import is_array_or_view_kind
from nbshm.memory.ownership.reach import Walk
from nbshm.memory.picklers import OutwardPickler
from nbshm.memory.reducers import Reducer, reducers
from nbshm.own_definitions import is_own


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """What a class is; it is kept, so that no other gets its id."""

    kind: type
    is_ours: bool
    is_generators: bool

    @classmethod
    def of(cls, kind: type) -> _Kind:
        is_ours = issubclass(kind, (type, FunctionType)) or is_own(kind)
        return cls(kind=kind, is_ours=is_ours, is_generators=is_generator_kind(kind))


class CapturingPickler(OutwardPickler):
    """Pickles the notebook's values; `buffers` holds the memory that they lie in.

    `others` are reducers for what is not memory. `note` is called for each random generator.
    """

    def __init__(
        self,
        reference: Callable[[Any], Any],
        *,
        others: Mapping[type, Reducer],
        note: Callable[[Any], object] = lambda _: None,
    ) -> None:
        self.buffers = Buffers()
        own: dict[int, Any] = {}
        # Not a method: the pickler would hold itself, and with it all memory until a garbage collection.
        found = reducers(self.buffers, lambda array: id(array) in own, lends_masks=True)
        found.update(others)
        self._own_arrays = own
        self._note = note
        self._walk = Walk(is_array_or_view_kind)
        self._kinds: dict[int, _Kind] = {}
        super().__init__(reference=reference, reducers=found)

    def meet(self, values: Iterable[Any]) -> None:
        """Take for the notebook's own what it holds anywhere in values that are going to be pickled."""
        self._own_arrays.update((id(array), array) for array in self._walk.reach(values))

    def dump(self, value: Any) -> None:
        """Pickle a value behind those that were pickled before."""
        self.meet([value])
        super().dump(value)

    def reducer_override(self, value: Any) -> Any:
        """Take for the notebook's own what its classes, functions and objects hold, wherever these are."""
        kind = self._kind(type(value))
        if kind.is_ours and not self._walk.has_met(value):
            self.meet([value])
        if kind.is_generators and is_generator(value):
            self._note(value)
        return super().reducer_override(value)

    def _kind(self, kind: type) -> _Kind:
        known = self._kinds.get(id(kind))
        return self._kinds.setdefault(id(kind), _Kind.of(kind)) if known is None else known

    def forget(self) -> None:
        """Let go of the arrays, of all that was pickled and of who was asked: nothing follows any more.

        They are holders while they are held here. Who was asked holds this pickler, and the values.
        """
        self._own_arrays.clear()
        self._walk = Walk(is_array_or_view_kind)
        self._reference = _unasked
        self.clear_memo()


class Picklers:
    """Makes the picklers of one departure, those of attempts that failed too, and has them all forget."""

    def __init__(self, others: Mapping[type, Reducer]) -> None:
        self._others = others
        self._made: list[CapturingPickler] = []
        self._generators: dict[int, Any] = {}

    @property
    def generators(self) -> tuple[Any, ...]:
        """The random generators that were pickled, without those that another of them has."""
        return without_those_inside(self._generators.values())

    def make(self, reference: Callable[[Any], Any]) -> CapturingPickler:
        """Make an empty pickler that asks `reference`."""
        met = self._generators
        pickler = CapturingPickler(
            reference, others=self._others, note=lambda generator: met.setdefault(id(generator), generator)
        )
        self._made.append(pickler)
        return pickler

    def forget(self) -> None:
        """Have all that were made let go of what they hold."""
        for pickler in self._made:
            pickler.forget()
        self._made.clear()


def _unasked(_: Any) -> Any:
    return NotImplemented
