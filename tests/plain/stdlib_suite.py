"""Run CPython's own tests of multiprocessing, as a program: a start method, then `hooked` or `plain`.

Prints the names of those that failed, one a line, and at last how many ran.
"""

from __future__ import annotations

import importlib
import signal
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import NoReturn

LIMIT = 120  # seconds for a test, all of which take a few

SUITE = """
from test import _test_multiprocessing
_test_multiprocessing.install_tests_in_module_dict(globals(), {method!r})
"""
"""What `test.test_multiprocessing_spawn` and its siblings are, which not every installation has."""


class Limited(unittest.TextTestResult):
    """Results of tests, each of which fails when its time is over."""

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802  # unittest's name
        super().startTest(test)
        signal.signal(signal.SIGALRM, _time_is_over)
        signal.alarm(LIMIT)

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802  # likewise
        signal.alarm(0)
        super().stopTest(test)


def _time_is_over(_number: int, _frame: FrameType | None) -> NoReturn:
    raise TimeoutError(f"the test took more than {LIMIT} s")


def run(method: str, directory: str) -> None:
    name = f"multiprocessing_tests_of_{method}"
    Path(directory, f"{name}.py").write_text(SUITE.format(method=method))
    sys.path.insert(0, directory)
    module = importlib.import_module(name)
    for of_threads in [name for name in vars(module) if name.startswith("WithThreads")]:
        delattr(module, of_threads)  # no process is started there; ThreadPool.terminate() hangs now and then
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(verbosity=2, resultclass=Limited).run(suite)
    print(*(test.id() for test, _ in result.failures + result.errors), sep="\n")
    print(result.testsRun)


def hook() -> None:
    """Let this program be what the notebook is in a kernel."""
    from nbshm.notebook.namespace import Notebook
    from nbshm.plain.hooks import PlainMultiprocessing
    from nbshm.processes.keeping import KeeperProcess
    from nbshm.processes.sweeping import Sweeper

    keeper = KeeperProcess(Sweeper())
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
