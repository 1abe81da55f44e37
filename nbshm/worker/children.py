"""Preparing a child of plain multiprocessing: the notebook's definitions as its `__main__`, and the hooks.

Whatever fails is told by who uses what is missing then: a pool would start a process that fails here again
and again.
"""

from __future__ import annotations

import io
import pickle
import sys
from types import ModuleType

from nbshm.jobs import Preparation
from nbshm.kept import Keeping
from nbshm.main_hook import MainHook
from nbshm.memory.segments import Segments
from nbshm.packing import Notebook
from nbshm.worker.imports import ImportWatch
from nbshm.worker.inheritance import keep_from_programs
from nbshm.worker.main_module import build_what_can_be, new_main_module


def prepare(preparation: Preparation) -> None:
    """Make this process what the preparation tells; called by unpickling a `MainModule`."""
    program = preparation.program
    sys.path[:] = preparation.sys_path
    keep_from_programs()
    _follow_torch(preparation)
    module = new_main_module()
    build_what_can_be(module, program, pickle.Unpickler(io.BytesIO(program.values)).load)
    notebook = Notebook(namespace=vars(module), cells=preparation.cells, left_out=program.left_out)
    MainHook(notebook, keeper=lambda: preparation.keeper).install()


def _follow_torch(preparation: Preparation) -> None:
    """Let queues keep what this process puts on them, and let torch share as it does in the notebook."""
    keeping = Keeping(lambda: preparation.keeper)
    keeping.install()

    def care(_: ModuleType) -> None:
        from nbshm.memory.plain_torch import PlainTorch  # noqa: PLC0415  # imports torch

        PlainTorch(Segments(), keep=keeping.keep).install()

    ImportWatch().when_imported("torch", care)
    if preparation.strategy is not None:
        from nbshm.memory.strategies import use_strategy  # noqa: PLC0415  # imports torch, which it is for

        use_strategy(preparation.strategy)
