"""The picklers that a run's values go through.

They are cloudpickle's, with the notebook asked first how its definitions are written; for values on their way
to a worker or back also with the reducers of multiprocessing and torch for what only they can carry (queues,
locks, connections), nbshm's own for memory, and refusals for what would arrive as something else than it is.
"""

from __future__ import annotations

import io
import socket
import sys
from collections import ChainMap
from collections.abc import Callable, Mapping
from multiprocessing.reduction import ForkingPickler
from types import CodeType, FunctionType
from typing import Any, ClassVar

import cloudpickle

from nbshm.definitions.by_value import reduce_code
from nbshm.refusals import Unsendable

Reducer = Callable[[Any], Any]

_TABLE = ChainMap({CodeType: reduce_code}, cloudpickle.Pickler.dispatch_table)


class PlainPickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle carries no types
    """Pickles values one after the other into one stream, with one memo.

    `reference(object)` is asked about functions, classes and other callables first: it answers with a
    reduction, or NotImplemented to leave the object to cloudpickle.
    """

    # A class attribute, because a pickler looks for its table while it is made.
    dispatch_table: ClassVar[Mapping[type, Reducer]] = _TABLE

    def __init__(self, *, reference: Callable[[Any], Any]) -> None:
        self._file = io.BytesIO()
        super().__init__(self._file, protocol=5)
        self._reference = reference

    @property
    def stream(self) -> bytes:
        """What has been pickled so far."""
        return self._file.getvalue()

    def reducer_override(self, value: Any) -> Any:
        """Let the notebook say how its definitions are written, before cloudpickle does."""
        kind = type(value)
        if kind is FunctionType or issubclass(kind, type) or callable(value):
            reduced = self._reference(value)
            if reduced is not NotImplemented:
                return reduced
        return super().reducer_override(value)


class ValuePickler(PlainPickler):
    """Pickles values for another process of the run; `reducers` are those for memory (see `reducers.py`)."""

    def __init__(self, *, reference: Callable[[Any], Any], reducers: Mapping[type, Reducer]) -> None:
        carried = ForkingPickler(io.BytesIO()).dispatch_table
        # Before the pickler is made: that is when it looks for its table.
        self.dispatch_table = ChainMap(dict(reducers), _refusals(), carried, _TABLE)
        super().__init__(reference=reference)


def _refusals() -> dict[type, Reducer]:
    """Return reducers for what other picklers would send as a copy, or as another process's own."""
    reducers: dict[type, Reducer] = {io.TextIOWrapper: _reduce_text_file, socket.socket: _refuse_socket}
    for stream in (sys.stdout, sys.stderr):
        reducers.setdefault(type(stream), _reduce_text_file)
    return reducers


def _reduce_text_file(file: Any) -> Any:
    """Send a standard stream as the worker's own; an open file would arrive as a copy of its contents."""
    for name in ("stdout", "stderr", "stdin", "__stdout__", "__stderr__", "__stdin__"):
        if file is getattr(sys, name, None):
            return getattr, (sys, name)
    kind = f"{type(file).__module__}.{type(file).__qualname__}"
    raise Unsendable(f"{kind} is an open file", "Open it inside the cell.")


def _refuse_socket(_: socket.socket) -> Any:
    raise Unsendable("socket.socket is an open socket", "Connect inside the cell.")
