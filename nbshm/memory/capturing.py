"""The pickler for a run's way out: it notes all memory, and which arrays are the notebook's own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from nbshm.memory.buffers import Buffers
from nbshm.memory.captures import Reducer, ValuePickler
from nbshm.memory.reach import reachable
from nbshm.memory.reducers import reducers


class CapturingPickler(ValuePickler):
    """Pickles the notebook's values; `buffers` holds the memory that they lie in.

    `others` are reducers for what is not memory.
    """

    def __init__(self, reference: Callable[[Any], Any], *, others: Mapping[type, Reducer]) -> None:
        self.buffers = Buffers()
        self._own_arrays: dict[int, Any] = {}
        super().__init__(reference=reference, reducers={**others, **reducers(self.buffers, self._is_own)})

    def dump(self, value: Any) -> None:
        """Pickle a value behind those that were pickled before."""
        self._own_arrays.update((id(array), array) for array in reachable([value], _is_array))
        super().dump(value)

    def forget(self) -> None:
        """Let go of the arrays and of all that was pickled: they are holders while they are held here."""
        self._own_arrays.clear()
        self.clear_memo()

    def _is_own(self, array: Any) -> bool:
        return id(array) in self._own_arrays


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)
