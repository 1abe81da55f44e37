"""Tasks that can't be unpickled, read for what is left of them: which task it is that fails."""

from __future__ import annotations

import io
import pickle
from typing import Any


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
        return self._known.get((module, name), _Anything)


class _Anything:
    """Stands for a class, an object or a function, in whatever way unpickling uses them."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Take any arguments."""

    def __call__(self, *_: Any, **__: Any) -> _Anything:
        return self

    def __setstate__(self, _: Any) -> None:
        """Take any state."""

    def __setitem__(self, _: Any, __: Any) -> None:
        """Take any item, as a kind of dict."""

    def extend(self, _: Any) -> None:
        """Take any items, as a kind of list."""

    def add(self, _: Any) -> None:
        """Take any item, as a kind of set."""
