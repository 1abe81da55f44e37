"""What others do with processes works as it does without the extension."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernels import Kernel, kernel

SUITE = Path(__file__).parent / "stdlib_suite.py"
LIMIT = 3000


@pytest.fixture(scope="module")
def shared_notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """One kernel, which is asked to end: only then does joblib remove what it has in /dev/shm."""
    with kernel(tmp_path_factory.mktemp("notebook")) as running:
        yield running
        running.manager.shutdown_kernel()


@pytest.mark.soak
@pytest.mark.timeout(2 * LIMIT)
@pytest.mark.skipif(
    importlib.util.find_spec("test._test_multiprocessing") is None, reason="this Python has no tests"
)
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_the_standard_librarys_own_tests_pass_as_without_the_hooks(tmp_path: Path, method: str) -> None:
    outcomes = {}
    for way in ("plain", "hooked"):
        command = [sys.executable, str(SUITE), method, way]
        result = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT, check=False
        )
        *failed, ran = result.stdout.split()
        outcomes[way] = set(failed), int(ran)
    assert outcomes["hooked"][0] <= outcomes["plain"][0]
    assert outcomes["hooked"][1] == outcomes["plain"][1] > 100


def test_joblib_runs_the_notebooks_functions(shared_notebook: Kernel) -> None:
    pytest.importorskip("joblib")
    shared_notebook.run("""
import joblib, os
offset = 3
class Row:
    def __init__(self, x): self.x = x
def row(x): return Row(x + offset), os.getpid()
rows = joblib.Parallel(n_jobs=2)(joblib.delayed(row)(x) for x in range(4))
assert [row.x for row, _ in rows] == [3, 4, 5, 6]
assert os.getpid() not in {pid for _, pid in rows}
lambdas = joblib.Parallel(n_jobs=2)(joblib.delayed(lambda x: x * offset)(x) for x in range(2))
assert lambdas == [0, 3]
processes = joblib.Parallel(n_jobs=2, backend="multiprocessing")(joblib.delayed(row)(x) for x in range(2))
assert [row.x for row, _ in processes] == [3, 4]
""").check()


def test_scikit_learn_fits_the_notebooks_estimators_in_processes(shared_notebook: Kernel) -> None:
    pytest.importorskip("sklearn")
    shared_notebook.run(
        """
import os, numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import cross_val_score
class Sign(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.pid_ = os.getpid()
        return self
    def predict(self, X): return np.sign(X[:, 0]).astype(int)
def accuracy(estimator, X, y):
    assert estimator.pid_ == os.getpid() != KERNEL
    return float(np.mean(estimator.predict(X) == y))
X = np.array([[-2.0], [-1.0], [1.0], [2.0]] * 3)
y = np.sign(X[:, 0]).astype(int)
assert cross_val_score(Sign(), X, y, cv=3, scoring=accuracy, n_jobs=2).tolist() == [1.0, 1.0, 1.0]
""".replace("KERNEL", str(shared_notebook.pid))
    ).check()


def test_an_executor_that_nobody_shut_down_ends_with_its_rank(shared_notebook: Kernel) -> None:
    """joblib's is such a one: it waits for more work."""
    pytest.importorskip("joblib")
    shared_notebook.run("""
import concurrent.futures, joblib, multiprocessing, os
def double(x): return 2 * x
""").check()
    shared_notebook.run(
        """%%parallel nprocs=2 timeout=60
if rank == 0:
    executor = concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver"))
    results = list(executor.map(double, range(3)))
else:
    results = joblib.Parallel(n_jobs=2)(joblib.delayed(double)(x) for x in range(3))
results"""
    ).check()
    assert shared_notebook.value("list(_)") == [[0, 2, 4], [0, 2, 4]]
