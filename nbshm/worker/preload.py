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

MODULES = (
    "numpy",
    "numpy.ma",
    "torch",
    "nbshm.worker.life",
    "nbshm.worker.work",
    "nbshm.memory.arrays",
    "nbshm.memory.tensors",
    "nbshm.memory.plain_torch",
)


def leave_group() -> None:
    """Leave the kernel's process group: what is sent to all of it is not for the server or its workers."""
    os.setpgid(0, 0)


def preload(modules: tuple[str, ...] = MODULES) -> None:
    """Import the modules, and do once what is slow the first time."""
    sys.path[:] = [entry for entry in sys.path if entry]  # the directory that the notebook happens to be in
    for module in modules:
        with contextlib.suppress(ImportError):  # the worker that needs it will say what is missing
            importlib.import_module(module)
    rehearse()
    importlib.invalidate_caches()  # files may come before a worker looks for them
    gc.collect()
    gc.freeze()  # a collection in a worker would write to every object's page, and so copy it


def rehearse() -> None:
    """Let the workers' shell and libraries do their first, slow steps."""
    with contextlib.suppress(ImportError):
        importlib.import_module("nbshm.worker.shell").warm_up()
    if "OMP_NUM_THREADS" not in os.environ:
        importlib.import_module("nbshm.worker.thread_pools").limit_threads(1)  # what most workers will have
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)  # looks for devices, and reads the source of its callers


leave_group()
preload()
