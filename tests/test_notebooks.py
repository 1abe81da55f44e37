"""The notebooks run from top to bottom, and give what is saved in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


@pytest.mark.timeout(400)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_gives_the_outputs_that_it_was_saved_with(notebook: Path) -> None:
    command = [sys.executable, "-m", "pytest", "--nbval", "-p", "no:cacheprovider", "-q", str(notebook)]
    run = subprocess.run(
        [*command, "-c", "/dev/null", "--rootdir", str(notebook.parent)],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
