"""What a notebook can define, used in workers: one file of cells a noun, all of them in one kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernels import Kernel

NOUNS = sorted((Path(__file__).parent.parent / "cells" / "lifting").glob("*.py"))


@pytest.mark.parametrize("noun", NOUNS, ids=lambda path: path.stem)
def test_a_worker_uses_what_the_notebook_defines(shared_notebook: Kernel, noun: Path) -> None:
    shared_notebook.run("%reset -f\n%parallel nprocs=2 start_method=forkserver").check()
    for cell in noun.read_text().split("# %%\n"):
        shared_notebook.run(cell).check()
