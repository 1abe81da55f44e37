"""Huge pages for a forkserver and its workers.

The server's own memory, because it forks again and again: its page table is quickly copied then. A
forkserver that has imported torch has 40 000 pages of its own. To copy their entries into a child, and to
drop them at its end, takes as long as all that a short cell does in between; with huge pages a third of that.
A page that a child writes to is copied alone, as before. And the tensors that a worker makes, which are new
each time.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from nbshm.memory.shared.raw_memory import COLLAPSE, HUGE_PAGE, advise, round_up

_TORCH_SWITCH = "THP_MEM_ALLOC_ENABLE"  # documented in torch's performance tuning guide


def collapse_memory() -> None:
    """Put this process's private memory into huge pages, as far as the system does that."""
    if sys.platform != "linux":
        return
    for start, stop in _private_memory():
        first, end = round_up(start, HUGE_PAGE), stop // HUGE_PAGE * HUGE_PAGE
        if first < end:
            advise(first, end - first, COLLAPSE)  # in vain on an older Linux, or if no huge page is free


@contextlib.contextmanager
def tensors_in_huge_pages() -> Iterator[None]:
    """Have torch, if it is imported inside, put big tensors into huge pages, as numpy does with arrays.

    A worker's tensors are new, and half of the time to fill a new one goes into touching its pages. torch
    looks at its switch when it first allocates, here and for all who are forked later; their environment is
    the notebook's own, so it is taken back.
    """
    if _TORCH_SWITCH in os.environ:  # the person's own choice
        yield
        return
    os.environ[_TORCH_SWITCH] = "1"
    try:
        yield
        if "torch" in sys.modules:
            importlib.import_module("torch").empty(1)
    finally:
        del os.environ[_TORCH_SWITCH]


def _private_memory() -> Iterator[tuple[int, int]]:
    """Yield the ranges that are writeable and belong to no file."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        where, access, _, _, inode, *name = line.split(maxsplit=5)
        if access == "rw-p" and inode == "0" and name in ([], ["[heap]"]):
            start, _, stop = where.partition("-")
            yield int(start, 16), int(stop, 16)
