"""Run CPython's own tests of multiprocessing, as a program: a start method, then `hooked` or `plain`.

Prints the names of those that failed, one a line, and at last how many ran.
"""

from __future__ import annotations

import importlib
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

SUITE = """
from test import _test_multiprocessing
_test_multiprocessing.install_tests_in_module_dict(globals(), {method!r})
"""
"""What `test.test_multiprocessing_spawn` and its siblings are, which not every installation has."""


def run(method: str, directory: str) -> None:
    name = f"multiprocessing_tests_of_{method}"
    Path(directory, f"{name}.py").write_text(SUITE.format(method=method))
    sys.path.insert(0, directory)
    suite = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    print(*(test.id() for test, _ in result.failures + result.errors), sep="\n")
    print(result.testsRun)


def hook() -> None:
    """Let this program be what the notebook is in a kernel."""
    from nbshm.packing import Notebook
    from nbshm.plain import PlainMultiprocessing
    from nbshm.processes.keeping import Keeper
    from nbshm.processes.sweeping import Sweeper

    keeper = Keeper(Sweeper())
    notebook = Notebook(namespace=vars(sys.modules["__main__"]))
    PlainMultiprocessing(
        notebook, keeper=lambda: keeper.address, for_children=keeper.ensure_started
    ).install()


if __name__ == "__main__":
    method, way = sys.argv[1:]
    if way == "hooked":
        hook()
    with TemporaryDirectory() as directory:
        run(method, directory)
