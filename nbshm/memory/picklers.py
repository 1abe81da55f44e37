"""The picklers that a run's values go through.

They are cloudpickle's, with the notebook asked first how its definitions are written; for values on their way
to a worker or back also with the reducers of multiprocessing and torch for what only they can carry (queues,
locks, connections), nbshm's own for memory, and refusals for what would arrive as something else than it is.
"""

from __future__ import annotations

import ctypes
import io
import operator
import socket
import sys
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from multiprocessing.reduction import ForkingPickler
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, ClassVar

import cloudpickle

from nbshm.definitions import standard_objects, weak_references
from nbshm.definitions.by_value import reduce_cell, reduce_code
from nbshm.garbage import collection_put_off
from nbshm.memory.reducers import Reducer
from nbshm.refusals import Unsendable
from nbshm.remade_exceptions import reduce_exception

_MOST = 64 << 20  # copying as much to a child takes about as long as starting it

_ARRAY_TYPE = type(ctypes.Array)  # the class of types like `c_int * 3`, which are in no module

_OWN: dict[type, Reducer] = {
    CellType: reduce_cell,
    CodeType: reduce_code,
    # By function and object; multiprocessing's asks the object for the name, which it may not have.
    MethodType: cloudpickle.Pickler.dispatch_table[MethodType],
    **standard_objects.reducers(),
    **weak_references.reducers(),
}
_TABLE = ChainMap(_OWN, cloudpickle.Pickler.dispatch_table)


class PlainPickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle carries no types
    """Pickles values one after the other into one stream, with one memo.

    `reference(object)` is asked about functions, classes and other callables first: it answers with a
    reduction, or NotImplemented to leave the object to cloudpickle.
    """

    # A class attribute, because a pickler looks for its table while it is made.
    dispatch_table: Mapping[type, Reducer] = _TABLE

    def __init__(self, *, reference: Callable[[Any], Any], file: io.BytesIO | None = None) -> None:
        self._file = io.BytesIO() if file is None else file
        super().__init__(self._file, protocol=5)
        self._reference = reference

    @property
    def stream(self) -> bytes:
        """What has been pickled so far."""
        return self._file.getvalue()

    def meet(self, values: Iterable[Any]) -> None:
        """Look at values that are going to be pickled: there is nothing to be seen."""

    def reducer_override(self, value: Any) -> Any:
        """Let the notebook say how its definitions are written, before cloudpickle does."""
        kind = type(value)
        if kind is FunctionType or issubclass(kind, type) or callable(value):
            reduced = self._reference(value)
            if reduced is not NotImplemented:
                return reduced
        if issubclass(kind, BaseException) and kind not in self.dispatch_table:
            reduced = reduce_exception(value)
            if reduced is not NotImplemented:
                return reduced
        if kind is _ARRAY_TYPE and value is value._type_ * value._length_:
            return operator.mul, (value._type_, value._length_)
        return super().reducer_override(value)


class ValuePickler(PlainPickler):
    """Pickles values for another process of the run; `reducers` are those for memory (see `reducers.py`)."""

    _own: ClassVar[dict[type, Reducer]] = _OWN

    def __init__(
        self,
        *,
        reference: Callable[[Any], Any],
        reducers: MutableMapping[type, Reducer],
        file: io.BytesIO | None = None,
    ) -> None:
        carried = ForkingPickler(io.BytesIO()).dispatch_table
        self._reducers = reducers
        # Before the pickler is made: that is when it looks for its table.
        self.dispatch_table = ChainMap(reducers, _refusals(), self._own, carried, _TABLE)
        super().__init__(reference=reference, file=file)

    @collection_put_off()
    def dump(self, value: Any) -> None:
        """Pickle a value behind those that were pickled before."""
        super().dump(value)

    def reducer_override(self, value: Any) -> Any:
        """Look for memory first, of which there may be thousands of objects; none is asked for as a name."""
        reduce = self._reducers.get(type(value))
        return super().reducer_override(value) if reduce is None or callable(value) else reduce(value)


class OutwardPickler(ValuePickler):
    """Pickles for a process that has its own of what there is one of in each: generators, `os.environ`."""

    _own: ClassVar = {**_OWN, **weak_references.holding_reducers()}

    def reducer_override(self, value: Any) -> Any:
        """Refer to the receiver's own of such objects."""
        reduced = standard_objects.reduce_the_only_one(value)
        return super().reducer_override(value) if reduced is None else reduced


class ChildPickler(OutwardPickler):
    """Pickles for children of plain multiprocessing, whose work is not known.

    Tensors are left to torch's reducers and arrays are copied, as is plain. A child is not sent more than
    `_MOST` bytes that it may never use; `check()` may have other limits.
    """

    def __init__(self, *, reference: Callable[[Any], Any], check: Callable[[], None]) -> None:
        self._check = check
        super().__init__(reference=reference, reducers={}, file=_LimitedFile())

    def dump(self, value: Any) -> None:
        """Pickle a value behind those that were pickled before, unless it is too much."""
        super().dump(value)
        self._check()


class _LimitedFile(io.BytesIO):
    """A file in memory that grows to a limit."""

    def write(self, content: Any, /) -> int:
        """Write, or raise Unsendable."""
        if self.tell() + memoryview(content).nbytes > _MOST:
            reason = f"it is too big to be copied to every child (over {_MOST >> 20} MiB)"
            raise Unsendable(reason, "Pass it to the process as an argument.")
        return super().write(content)


_POOLS = {
    "multiprocessing.pool": ("Pool", "ThreadPool"),
    "concurrent.futures.process": ("ProcessPoolExecutor",),
    "concurrent.futures.thread": ("ThreadPoolExecutor",),
}


def _refusals() -> dict[type, Reducer]:
    """Return reducers for what other picklers would send as a copy, or as another process's own."""
    reducers: dict[type, Reducer] = {
        io.TextIOWrapper: _reduce_text_file,
        socket.socket: _refuse_socket,
        ctypes.CDLL: _refuse_library,
    }
    for module, names in _POOLS.items():
        if module in sys.modules:
            reducers |= {getattr(sys.modules[module], name): _refuse_pool for name in names}
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


def _refuse_pool(pool: Any) -> Any:
    reason = f"{type(pool).__qualname__} is a pool of this process's own"
    raise Unsendable(reason, "Make it inside the cell.", as_a_whole=True)


def _refuse_library(_: ctypes.CDLL) -> Any:
    raise Unsendable("ctypes.CDLL is a library in this process", "Load it inside the cell.")


def _refuse_socket(_: socket.socket) -> Any:
    raise Unsendable("socket.socket is an open socket", "Connect inside the cell.")
