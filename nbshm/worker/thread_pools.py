"""The thread pools of the BLAS and of OpenMP: found once, limited only where that changes something."""

from __future__ import annotations

import functools
from typing import Any

import threadpoolctl


@functools.cache
def thread_pools() -> tuple[Any, ...]:
    """Return the pools that are loaded when this is first asked; in the forkserver, for all its workers.

    To find them is to walk through every library that this process has mapped.
    """
    return tuple(threadpoolctl.ThreadpoolController().lib_controllers)


def limit_threads(threads: int) -> None:
    """Let each pool have that many threads; those that are loaded later read OMP_NUM_THREADS."""
    for pool in thread_pools():
        # OpenBLAS starts its threads anew after a fork when it is told a number, be it the one it has, and
        # they spin for a while before they sleep.
        if pool.num_threads != threads:
            pool.set_num_threads(threads)
