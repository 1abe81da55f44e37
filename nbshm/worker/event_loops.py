"""The event loop in which a body's top-level `await` runs, and what becomes of tasks that it leaves there."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from nbshm.words import line_in_words

T = TypeVar("T")

_PATIENCE = 2.0
"""Seconds that tasks which are cancelled have for their `finally` blocks, as code that is interrupted has."""


class EventLoop:
    """One event loop for a worker's life, as a notebook has one: a body finds what the last left in it."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end.

        An interrupt that hits the loop while everything waits is brought to the coroutine as a cancellation
        first, so that its `finally` blocks run: asyncio by itself would leave the coroutine where it is.
        """
        loop = self._open()
        task = loop.create_task(coroutine)
        try:
            return loop.run_until_complete(task)
        except KeyboardInterrupt:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    loop.run_until_complete(task)
            raise

    def cancel_tasks(self, cells: Mapping[str, int]) -> Counter[str]:
        """Cancel what still runs in the loop, which turns no more, and let it end.

        Returns the lines of cells at which such tasks stood, and how many at each.
        """
        tasks = set() if self._loop is None else asyncio.all_tasks(self._loop)
        lines = Counter(_lines(tasks, cells))
        for task in tasks:
            task.cancel()
        if self._loop is not None and tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=_PATIENCE))
        return lines

    def _open(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop


def _lines(tasks: Iterable[asyncio.Task[Any]], cells: Mapping[str, int]) -> Iterator[str]:
    """Return the lines at which coroutines of the notebook's cells stand."""
    for task in tasks:
        frame = getattr(task.get_coro(), "cr_frame", None)
        if frame is not None and frame.f_code.co_filename in cells:
            yield line_in_words(frame.f_lineno, cells[frame.f_code.co_filename])
