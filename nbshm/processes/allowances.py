"""Whether this process may open what a run's workers need, asked before one is started."""

from __future__ import annotations

import resource

from nbshm.machine.descriptor_limit import allow_descriptors
from nbshm.options import OptionError

_FOR_A_WORKER = 11
"""A socket's two ends, two pipes', a page, what multiprocessing keeps of a process, a pidfd; one to spare."""

_FOR_A_RUN = 24
"""The job's own files, the supervisor's selector and its pipe, and what is open for a moment."""


def descriptors_for(nprocs: int) -> int:
    """Return how many descriptors the kernel needs for a run of that many workers, its segments apart."""
    return nprocs * _FOR_A_WORKER + _FOR_A_RUN


_SMALL_SHARE = 4


def can_stand_by(many: int) -> bool:
    """Tell whether so many workers may stand by: they are to take a small share of the descriptors left."""
    needed = _SMALL_SHARE * _FOR_A_WORKER * many
    return allow_descriptors(needed) >= needed


def check_workers(nprocs: int) -> None:
    """Raise OptionError where this process may not open what that many workers need."""
    needed = descriptors_for(nprocs)
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
