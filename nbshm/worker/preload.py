"""What the forkserver imports before the first worker is asked for, so that no worker has to.

Importing this module is its work. Only what is installed is preloaded: a module beside the notebook may be
edited between two cells, and each worker imports it afresh.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from multiprocessing import process

MODULES = (
    "multiprocessing.popen_forkserver",
    "numpy",
    "numpy.ma",
    "torch",
    "nbshm.worker.life",
    "nbshm.worker.work",
    "nbshm.memory.arrays",
    "nbshm.memory.tensors.reducer",
    "nbshm.memory.tensors.plain_torch",
    "nbshm.worker.data_parallel",
    "nbshm.worker.parameters",
)


_HERE = ("", process.ORIGINAL_DIR)  # type: ignore[attr-defined]  # typeshed leaves it out
"""The directory that the notebook happens to be in; later Pythons hand it to a forkserver by its name."""


def leave_group() -> None:
    """Leave the kernel's process group: what is sent to all of it is not for the server or its workers."""
    os.setpgid(0, 0)


def preload() -> None:
    """Import the modules, and do once what is slow the first time."""
    sys.path[:] = [entry for entry in sys.path if entry not in _HERE]
    huge_pages = importlib.import_module("nbshm.worker.huge_pages")
    with huge_pages.tensors_in_huge_pages():
        for module in MODULES:
            with contextlib.suppress(ImportError):  # the worker that needs it will say what is missing
                importlib.import_module(module)
    rehearse()
    settle()


def settle() -> None:
    """Get ready to fork."""
    importlib.invalidate_caches()  # files may come before a worker looks for them
    gc.collect()
    gc.freeze()  # a collection in a worker would write to every object's page, and so copy it
    importlib.import_module("nbshm.worker.huge_pages").collapse_memory()


_WARM = 10
"""Calls after which Python 3.11 and later have specialised a function, which writes to its code."""


def rehearse() -> None:
    """Do what every worker does, and what is slower the first times."""
    for room in ("nbshm.worker.surroundings", "nbshm.worker.shell"):
        with contextlib.suppress(ImportError):
            part = importlib.import_module(room)
            for _ in range(_WARM):
                part.rehearse()


leave_group()
preload()
