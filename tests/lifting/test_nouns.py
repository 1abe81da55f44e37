"""What a notebook can define, used in workers: one file of cells a noun, all of them in one kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernels import Kernel

METHODS = ["forkserver", "spawn", "fork"]
KINDS = [
    "functions",
    "names_of_modules",
    "class_memory",
    "dataclass_forms",
    "metaclasses",
    "live_state",
    "by_value",
]
NOUNS = sorted((Path(__file__).parent.parent / "cells" / "lifting").glob("*.py"))


@pytest.mark.parametrize("noun", NOUNS, ids=lambda path: path.stem)
def test_a_worker_uses_what_the_notebook_defines(shared_notebook: Kernel, noun: Path) -> None:
    run_cells(shared_notebook, noun, "forkserver")


@pytest.mark.parametrize("method", METHODS[1:])
@pytest.mark.parametrize("noun", [each for each in NOUNS if each.stem in KINDS], ids=lambda path: path.stem)
def test_every_start_method_is_the_same(shared_notebook: Kernel, noun: Path, method: str) -> None:
    run_cells(shared_notebook, noun, method)


def run_cells(kernel: Kernel, noun: Path, method: str) -> None:
    kernel.run(f"%reset -f\n%parallel nprocs=2 start_method={method}").check()
    for cell in noun.read_text().split("# %%\n"):
        kernel.run(cell).check()
