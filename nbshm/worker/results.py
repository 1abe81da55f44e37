"""What a rank gives back, pickled: with the notebook's own memory and definitions by reference."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from multiprocessing.connection import Connection
from types import FunctionType
from typing import Any

from nbshm.attributes import found_at
from nbshm.definitions.by_value import known_class, known_classes, reduce_by_name, reduce_product
from nbshm.definitions.returned import Globals, own_names, reduce_returned
from nbshm.definitions.sources import name_in_notebook
from nbshm.given_names import GIVEN_NAMES
from nbshm.jobs import Outcome, Parcel
from nbshm.memory import parcels
from nbshm.memory.buffers import Buffers
from nbshm.memory.mapping import MappedSegments
from nbshm.memory.picklers import PlainPickler, ValuePickler
from nbshm.memory.reducers import reducers
from nbshm.memory.shared.segments import Segment
from nbshm.own_definitions import is_modules_own
from nbshm.refusals import Unsendable

_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes})


class ResultPickling:
    """Pickles values of a worker for the kernel.

    `definitions` are the notebook's, as this worker has them: an instance of one of these classes comes back
    as an instance of the notebook's class. What the body defined itself goes by value, as the notebook has no
    such name, and takes along what it reads of the names that the body has bound in `namespace`.
    `spare` is the number of a segment for memory that is given back, if there is one.
    """

    def __init__(
        self,
        *,
        definitions: Mapping[str, Any],
        mapping: MappedSegments,
        namespace: Mapping[str, Any],
        spare: int | None,
    ) -> None:
        self._definitions = definitions
        self._classes = known_classes()
        self._mapping = mapping
        self._spare = spare
        self._namespace = namespace
        self._notebook_names = namespace.keys() - GIVEN_NAMES
        self._own: dict[FunctionType, Globals] = {}
        self.cut_graphs = 0  # tensors that have been pickled without the autograd graph they are part of

    def pack(self, value: Any) -> tuple[Parcel, tuple[Segment, ...]]:
        """Return the value as a parcel, and the segments whose descriptors travel with it."""
        if isinstance(value, Outcome) and _is_plain(value):  # as most are; the pickler takes long to make
            return Parcel(pickled=pickle.dumps(value, protocol=5)), ()
        return parcels.pack(value, mapping=self._mapping, pickle=self._pickle, spare=self._spare)

    def try_out(self, value: Any) -> None:
        """Pickle a value as `pack` does, or raise what it raises."""
        self._pickle(value, Buffers())

    def dumps(self, value: Any) -> bytes:
        """Pickle a value whole, with whatever memory it has."""
        pickler = PlainPickler(reference=self._reference)
        pickler.dump(value)
        return pickler.stream

    def _pickle(self, value: Any, buffers: Buffers) -> bytes:
        found = reducers(buffers, lambda _: True, meet_graph=self._cut_graph)
        found[Connection] = _refuse_connection
        pickler = ValuePickler(reference=self._reference, reducers=found)
        pickler.dump(value)
        return pickler.stream

    def _cut_graph(self, *_: str) -> None:
        self.cut_graphs += 1

    def _reference(self, value: Any) -> Any:
        path = name_in_notebook(value)
        if path is not None and found_at(path, self._definitions) is value:
            return reduce_by_name(value, path)
        if type(value) is FunctionType and value.__globals__ is self._namespace:
            return self._reduce(value)
        if is_modules_own(value):
            return NotImplemented
        if issubclass(type(value), type) and value in self._classes:
            return known_class, (self._classes[value],)
        return reduce_product(value)

    def _reduce(self, function: FunctionType) -> Any:
        # One object for each function: its names may lead back to the function itself.
        if function not in self._own:
            self._own[function] = own_names(function, self._namespace, self._notebook_names)
        return reduce_returned(function, self._own[function])


def _is_plain(outcome: Outcome) -> bool:
    """Tell whether there is nothing in it that any pickler would treat in another way."""
    return all(type(value) in _PLAIN for value in (outcome.value, *outcome.out.values()))


def _refuse_connection(_: Connection) -> Any:
    raise Unsendable("it is an open connection, which ends with its rank")
