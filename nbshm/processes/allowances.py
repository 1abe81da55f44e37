"""How many descriptors a process may open: counted ahead, the limit raised as far as it goes.

Half of a run's workers would be started before the others can't be, or lose descriptors that Linux drops
without a word.
"""

from __future__ import annotations

import os
import resource

from nbshm.options import OptionError

_FOR_A_WORKER = 11
"""A socket's two ends, two pipes', a page, what multiprocessing keeps of a process, a pidfd; one to spare."""

_FOR_A_RUN = 16
"""The supervisor's selector and its pipe, and what is open for a moment."""


def allow_descriptors(count: int) -> int:
    """Raise the soft limit if `count` more descriptors may not fit; return how many can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = _opened()
    if soft != resource.RLIM_INFINITY and soft < len(opened) + count:
        wanted = max(soft, max(opened) + 1 + count)
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return count if soft == resource.RLIM_INFINITY else max(0, soft - len(opened))


def check_workers(nprocs: int) -> None:
    """Raise OptionError where this process may not open what that many workers need."""
    needed = nprocs * _FOR_A_WORKER + _FOR_A_RUN
    left = allow_descriptors(needed)
    if left >= needed:
        return
    most = (left - _FOR_A_RUN) // _FOR_A_WORKER
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    fewer = f"Use nprocs={most} or less, or raise" if most > 0 else "Raise"
    raise OptionError(
        f"nprocs={nprocs} needs {needed} file descriptors here, and {left} are left of the {limit} that this "
        f"process may open. {fewer} the limit (ulimit -n) before Jupyter is started."
    )


def _opened() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208  # numbers, no paths
