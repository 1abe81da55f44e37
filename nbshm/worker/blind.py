"""Tasks that can't be unpickled, read for what is left of them: which task it is that fails."""

from __future__ import annotations

import io
import pickle
from typing import Any

from nbshm.worker.stand_ins import stand_in


def read_blindly(pickled: bytes, *known: type) -> Any:
    """Unpickle without running anything that the pickle names, but the `known` classes.

    What stands for the rest is of no use. Left are numbers and containers, and objects of those classes.
    """
    return _Blind(pickled, known).load()


class _Blind(pickle.Unpickler):
    def __init__(self, pickled: bytes, known: tuple[type, ...]) -> None:
        super().__init__(io.BytesIO(pickled))
        self._known = {(kind.__module__, kind.__qualname__): kind for kind in known}

    def find_class(self, module: str, name: str, /) -> Any:
        """Return a class that is known, else what stands for anything."""
        return self._known.get((module, name)) or stand_in(f"{module}.{name}", is_class=True)
