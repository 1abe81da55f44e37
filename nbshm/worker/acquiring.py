"""Locks of multiprocessing in a worker: waiting for one is a frame of its own, which a stack shows.

multiprocessing gives each lock its semaphore's `acquire`, which is compiled. A rank that waits in it would
seem to compute in its cell's line.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any


def show_acquiring(synchronize: ModuleType) -> None:
    """Have the locks that are made from now on, also by unpickling, acquire in a function of this module.

    `SemLock._make_methods` is where multiprocessing gives a lock its methods; there is no public place.
    """
    kind: Any = vars(synchronize)["SemLock"]
    make_methods = kind._make_methods  # noqa: SLF001  # as said above

    def _make_methods(lock: Any) -> None:
        make_methods(lock)
        lock.acquire = _in_sight(lock.acquire)

    kind._make_methods = _make_methods  # noqa: SLF001  # likewise


def _in_sight(compiled: Any) -> Any:
    def acquire(block: bool = True, timeout: float | None = None) -> bool:  # noqa: FBT001, FBT002  # its signature
        acquired: bool = compiled(block, timeout)
        return acquired

    return acquire
