"""How many descriptors this process may open: counted ahead, the limit raised as far as it goes.

A process that runs into the limit breaks anywhere: half of a run's workers are started, Linux drops
descriptors that were sent without a word, and IPython can't even show an error.
"""

from __future__ import annotations

import errno
import os
import resource

_KEPT_FREE = 64
"""For what else the process opens: one that uses its very last descriptor can't even count them."""

_AT_ONCE = 1024
"""How many more are allowed where they are opened one by one."""


def allow_descriptors(count: int) -> int:
    """Raise the soft limit if `count` more descriptors may not fit; return how many can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = opened_descriptors()
    if soft != resource.RLIM_INFINITY and soft < len(opened) + count + _KEPT_FREE:
        wanted = max(soft, max(opened) + 1 + count + _KEPT_FREE)
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return count
    return soft - sum(number < soft for number in opened)  # others were opened under a higher limit


def can_open(few: int) -> bool:
    """Tell whether at least `few` more descriptors can be opened, many more being allowed if they are needed.

    For who opens one after the other: they are counted only now and then.
    """
    return not are_fewer_left_than(few) or allow_descriptors(_AT_ONCE) >= few


def are_fewer_left_than(count: int) -> bool:
    """Tell, without counting, whether less than `count` descriptors can be opened below the soft limit.

    A new one has the lowest number that is free; where that is low, there are many.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return False
    try:
        newest = os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return True
    os.close(newest)
    return newest + count > soft


def opened_descriptors() -> list[int]:
    """Return the numbers of the descriptors that are open; all that may be where none is left to count by."""
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208  # numbers, no paths
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return list(range(soft))


def descriptors_in_words() -> str:
    """Say how many descriptors are open, and how many may be: `53 of 1024 (up to 4096 if need be)`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = len(opened_descriptors())
    if soft == resource.RLIM_INFINITY:
        return f"{opened}, without a limit"
    return f"{opened} of {soft}" if hard == soft else f"{opened} of {soft} ({_raised(hard)} if need be)"


def _raised(hard: int) -> str:
    return "any number" if hard == resource.RLIM_INFINITY else f"up to {hard}"
