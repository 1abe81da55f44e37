"""Forks that make a rank, told from those of the person's own code."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator


class _Forker(threading.local):
    """The process that makes ranks by forking in this thread, by its id; 0 while none does."""

    pid = 0


_forker = _Forker()


@contextlib.contextmanager
def forking_a_rank() -> Iterator[None]:
    """Have the children that are forked inside be ranks."""
    _forker.pid = os.getpid()
    try:
        yield
    finally:
        _forker.pid = 0


def is_new_rank() -> bool:
    """Tell, in a child that has just been forked, whether it is a rank; its own children are none."""
    return _forker.pid == os.getppid()
