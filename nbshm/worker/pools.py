"""Pools in whose processes something fails before a task runs: the tasks raise it.

A process of `multiprocessing.Pool` that fails in its initializer, or while it unpickles a task, ends; the
pool starts another one, for ever, and who waits for a task waits for ever. Everything else goes the standard
library's way.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

from nbshm.worker.blind import read_blindly
from nbshm.worker.stand_ins import failing
from nbshm.worker.tasks import telling


def let_tasks_tell(pool: ModuleType) -> None:
    """Replace what a pool's processes run, in a process that may be one of them.

    It is found there by its name, and by that of its module, when the process object is unpickled.
    """
    original = pool.worker

    @functools.wraps(original)  # the name by which this process pickles it for pools of its own
    def worker(
        inqueue: Any, outqueue: Any, initializer: Any = None, initargs: Any = (), *others: Any
    ) -> None:
        tasks = _Tasks(inqueue)
        if initializer is None:
            original(tasks, outqueue, None, (), *others)
        else:
            original(tasks, outqueue, tasks.initialize, (initializer, initargs), *others)

    pool.worker = worker  # type: ignore[attr-defined]  # its name since Python 2.6


class _Tasks:
    """The queue of a pool's tasks, as its processes see it: none is lost, if only to say what failed."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._writer = queue._writer  # noqa: SLF001  # the standard library's function closes it
        self._failure: Exception | None = None

    def initialize(self, initializer: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Call the initializer, and note what it raises."""
        try:
            initializer(*arguments)
        except Exception as error:  # noqa: BLE001  # told by every task
            self._failure = error

    def get(self) -> Any:
        """Return the next task: job, place, function, arguments, keyword arguments; None at the end."""
        with self._queue._rlock:  # noqa: SLF001  # as `SimpleQueue.get` does, which would lose the bytes
            pickled = self._queue._reader.recv_bytes()  # noqa: SLF001  # likewise
        try:
            task = pickle.loads(pickled)
        except Exception as error:  # noqa: BLE001  # told by this task
            return _failing(read_blindly(pickled), error)
        if task is None:
            return None
        return _told(task) if self._failure is None else _failing(task, self._failure)


def _told(task: Any) -> Any:
    job, place, function, *given = task
    return job, place, telling(function), *given


def _failing(task: Any, error: Exception) -> Any:
    job, place, *_ = task
    return job, place, failing(error), (), {}
