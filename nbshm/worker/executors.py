"""Executors whose processes fail beside their tasks.

A process of a `ProcessPoolExecutor` that fails in its initializer, or while it unpickles a task, ends; that
breaks the executor, whose `BrokenProcessPool` knows no reason. A task that can't be unpickled is made one
that raises why. What does break an executor is told as the cause: it takes for the reason what it can't
unpickle among its results, so that is what the process sends.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import traceback
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NoReturn

from nbshm.worker.blind import read_blindly
from nbshm.worker.stand_ins import failing
from nbshm.worker.tasks import telling


class ProcessFailed(RuntimeError):  # noqa: N818  # the name is the condition
    """A process of an executor failed beside its tasks; the message has the traceback."""


def let_executors_tell(executors: ModuleType) -> None:
    """Replace what an executor's processes run, in a process that may be one of them."""
    original = executors._process_worker  # noqa: SLF001  # its name since Python 3.2; there is no other door

    @functools.wraps(original)  # the name by which this process pickles it for executors of its own
    def process_worker(
        calls: Any, results: Any, initializer: Any = None, initargs: Any = (), *others: Any
    ) -> None:
        def initialize(initializer: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
            with _told_by(results):
                initializer(*arguments)

        own_calls = _Calls(calls, executors._CallItem)  # noqa: SLF001  # its name since Python 3.2
        with _told_by(results):
            if initializer is None:
                original(own_calls, results, None, (), *others)
            else:
                original(own_calls, results, initialize, (initializer, initargs), *others)

    executors._process_worker = process_worker  # type: ignore[attr-defined]  # noqa: SLF001  # likewise


class _Calls:
    """The queue of an executor's tasks, as its processes see it: none is lost, if only to say what failed."""

    def __init__(self, queue: Any, kind: type) -> None:
        self._queue = queue
        self._kind = kind

    def get(self, block: bool = True) -> Any:  # noqa: ARG002, FBT001, FBT002  # as the queue's own; it is True
        """Return the next task, None at the end."""
        pickled = self._next()
        try:
            call = pickle.loads(pickled)
        except Exception as error:  # noqa: BLE001  # told by this task
            call = read_blindly(pickled, self._kind)
            call.fn, call.args, call.kwargs = failing(error), (), {}
            return call
        if call is not None:
            call.fn = telling(call.fn)
        return call

    def _next(self) -> bytes:
        """Take a task from the queue as `Queue.get` does, which would lose the bytes."""
        with self._queue._rlock:  # noqa: SLF001  # the names are those of Python 3.3 to 3.14
            pickled: bytes = self._queue._recv_bytes()  # noqa: SLF001  # likewise
            self._queue._sem.release()  # noqa: SLF001  # likewise
        return pickled


class _Poison:
    """Raises `ProcessFailed` where it is unpickled."""

    def __init__(self, told: str) -> None:
        self._told = told

    def __reduce__(self) -> tuple[Any, ...]:
        return _fail, (self._told,)


def _fail(told: str) -> NoReturn:
    raise ProcessFailed(told)


@contextlib.contextmanager
def _told_by(results: Any) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        trace = "".join(traceback.format_exception(error))
        results.put(_Poison(f"a process of the executor failed beside its tasks:\n\n{trace}"))
        raise
