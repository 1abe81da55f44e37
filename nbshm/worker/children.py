"""Preparing a child of plain multiprocessing: the notebook's definitions as its `__main__`, and the hooks.

Whatever fails is told by who uses what is missing then: a pool would start a process that fails here again
and again.
"""

from __future__ import annotations

import io
import sys
from types import ModuleType

from nbshm.jobs import Preparation
from nbshm.notebook.located_modules import LocationFinder
from nbshm.notebook.namespace import Notebook
from nbshm.plain.hooks import PlainMultiprocessing
from nbshm.worker.executors import let_executors_tell
from nbshm.worker.imports import ImportWatch
from nbshm.worker.inheritance import keep_from_programs
from nbshm.worker.main_module import build_what_can_be, new_main_module
from nbshm.worker.pools import let_tasks_tell
from nbshm.worker.value_stream import ValueStream


def prepare(preparation: Preparation) -> None:
    """Make this process what the preparation tells; called by unpickling a `MainModule`."""
    program = preparation.program
    sys.meta_path.insert(0, LocationFinder(preparation.located))
    keep_from_programs()
    module = new_main_module()
    notebook = Notebook(namespace=vars(module), cells=preparation.cells, left_out=program.left_out)
    plain = PlainMultiprocessing(notebook, keeper=lambda: preparation.keeper)
    _follow_imports(plain)
    if preparation.strategy is not None:
        from nbshm.memory.tensors.strategies import use_strategy  # noqa: PLC0415  # imports torch, which it is for

        use_strategy(preparation.strategy)
    build_what_can_be(module, program, ValueStream(io.BytesIO(program.values)).load)
    plain.install()


def _follow_imports(plain: PlainMultiprocessing) -> None:
    """Care for what this process sends and is sent, when it has the libraries for it."""

    def care(_: ModuleType) -> None:
        from nbshm.memory.shared.segments import Segments  # noqa: PLC0415  # likewise of no use before
        from nbshm.memory.tensors.plain_torch import PlainTorch  # noqa: PLC0415  # imports torch

        PlainTorch(Segments(), keep=plain.keep).install()

    watch = ImportWatch()
    watch.when_imported("torch", care)
    watch.when_imported("multiprocessing.pool", let_tasks_tell)
    watch.when_imported("concurrent.futures.process", let_executors_tell)
