"""Taking the notebook's surroundings over in a worker, before anything of the notebook is there."""

from __future__ import annotations

import functools
import locale
import logging
import multiprocessing
import os
import random
import re
import sys
import time
import warnings
from collections.abc import Mapping
from itertools import accumulate
from operator import attrgetter
from types import ModuleType
from typing import Any

from nbshm.notebook.libraries import read_libraries, worker_backend, write_library
from nbshm.notebook.located_modules import LocationFinder
from nbshm.notebook.seeds import NUMPY_LIMIT, Seeds
from nbshm.notebook.surroundings import LogLevel, Surroundings, WarningFilter, capture_surroundings
from nbshm.worker.imports import Action, ImportWatch
from nbshm.worker.thread_pools import limit_threads


def apply_surroundings(surroundings: Surroundings, *, rank: int, nprocs: int) -> ImportWatch:
    """Make this process's surroundings the notebook's; close what is returned when the run has ended."""
    watch = ImportWatch()
    _enter(surroundings)
    _set_environment(_environment(surroundings, rank=rank, nprocs=nprocs))
    if locale.setlocale(locale.LC_ALL) != surroundings.locale:
        locale.setlocale(locale.LC_ALL, surroundings.locale)
    _set_log_levels(surroundings.log_levels, watch)
    _set_filters(surroundings.warning_filters, watch)
    _limit_threads(surroundings.threads, watch)
    for name, state in surroundings.libraries.items():
        if _found().pop(name, None) != state:
            watch.when_imported(name, _writer(name, state))
    watch.when_imported("cvxpy.lin_ops.lin_utils", lambda utils: _number_apart(utils.ID_COUNTER, rank))
    _seed(surroundings.seeds, rank, watch)
    return watch


_IPYKERNELS_FILTER = ".*Trio's signal handling code might have collided.*"  # in force in every notebook


def rehearse() -> None:
    """Let a process take its own surroundings over, so that those forked from it have less to do."""
    re.compile(_IPYKERNELS_FILTER, re.IGNORECASE)  # `re` keeps what it has compiled
    own = capture_surroundings(threads=None, share=1, seed=0, port=0)
    apply_surroundings(own, rank=0, nprocs=1).close()
    _found.cache_clear()
    _found()


def _enter(surroundings: Surroundings) -> None:
    if surroundings.directory is not None:
        os.chdir(surroundings.directory)
    if surroundings.umask is not None:
        os.umask(surroundings.umask)
    if surroundings.cpus is not None and surroundings.cpus != os.sched_getaffinity(0):
        os.sched_setaffinity(0, surroundings.cpus)
    sys.path[:] = surroundings.path
    sys.meta_path.insert(0, LocationFinder(surroundings.located))
    sys.argv[:] = surroundings.argv
    multiprocessing.current_process().authkey = surroundings.authkey
    if surroundings.start_method is not None:
        multiprocessing.set_start_method(surroundings.start_method, force=True)
    sys.setrecursionlimit(surroundings.recursion_limit)
    if surroundings.digits is not None:
        sys.set_int_max_str_digits(surroundings.digits)


def _environment(surroundings: Surroundings, *, rank: int, nprocs: int) -> dict[str, str]:
    """Return the notebook's environment with what a rank needs; the person's own values win."""
    environment = {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(nprocs),
        "LOCAL_WORLD_SIZE": str(nprocs),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(surroundings.port),
        **_thread_counts(surroundings.threads),
        **surroundings.environment,
    }
    environment["MPLBACKEND"] = worker_backend(environment.get("MPLBACKEND"))
    if surroundings.threads is not None:
        environment["OMP_NUM_THREADS"] = str(surroundings.threads)
    return environment


_THREAD_COUNTS = {
    "polars": "POLARS_MAX_THREADS",
    "tokenizers": "RAYON_NUM_THREADS",
}
"""Where libraries look once for the number of their threads, which care nothing for OMP_NUM_THREADS.

numba's is not among them: it is the most that `numba.set_num_threads` takes.
"""


def _thread_counts(threads: int | None) -> dict[str, str]:
    """Return what tells libraries to have that many threads; a forked kernel's have looked before."""
    if threads is None:
        return {}
    return {name: str(threads) for library, name in _THREAD_COUNTS.items() if library not in sys.modules}


def _set_environment(environment: Mapping[str, str]) -> None:
    before = dict(os.environ)
    for name in before.keys() - environment.keys():
        del os.environ[name]
    for name, value in environment.items():
        if before.get(name) != value:
            os.environ[name] = value
    if before.get("TZ") != environment.get("TZ"):
        time.tzset()


def _set_log_levels(levels: tuple[LogLevel, ...], watch: ImportWatch) -> None:
    """Give loggers their levels, which libraries do not change that are imported later."""
    for item in levels:
        if item.home is None:  # else a plain one would take the place of what that module makes
            _set_level(logging.getLogger(item.logger), item.level)
        for module in (*accumulate(item.logger.split("."), "{}.{}".format), item.home or ""):
            watch.around_import(module, functools.partial(_level_kept, item))


def _level_kept(item: LogLevel) -> Action:
    """Return what gives a logger again the level that it has now; the notebook's, where there is none yet."""
    before = _logger_there(item.logger)
    level = item.level if before is None else before.level

    def set_level(_: ModuleType) -> None:
        logger = _logger_there(item.logger)
        if logger is not None:
            _set_level(logger, level)

    return set_level


def _logger_there(name: str) -> logging.Logger | None:
    """Return the logger of a name if there is one yet; to ask for it otherwise makes it."""
    found = logging.Logger.manager.loggerDict.get(name)
    return found if isinstance(found, logging.Logger) else None


def _set_level(logger: logging.Logger, level: int) -> None:
    if logger.level != level:  # setting it looks at every logger that there is
        logger.setLevel(level)


def _set_filters(filters: tuple[WarningFilter, ...], watch: ImportWatch) -> None:
    warnings.resetwarnings()
    for item in filters:
        module, name = item.category
        if module in sys.modules:
            _add_filter(item, attrgetter(name)(sys.modules[module]), last=True)
        else:
            watch.when_imported(module, _adder(item))


def _add_filter(item: WarningFilter, category: type[Warning], *, last: bool) -> None:
    action: Any = item.action  # one that was in force in the kernel
    warnings.filterwarnings(action, item.message, category, item.module, item.line, append=last)


def _adder(item: WarningFilter) -> Action:
    return lambda module: _add_filter(item, attrgetter(item.category[1])(module), last=False)


def _limit_threads(threads: int | None, watch: ImportWatch) -> None:
    if threads is not None:
        limit_threads(threads)
        watch.when_imported("torch", lambda torch: torch.set_num_threads(threads))
        if "cv2" not in sys.modules:  # a forked kernel's would wait for the threads that it has started there
            watch.when_imported("cv2", lambda cv2: cv2.setNumThreads(threads))


@functools.cache
def _found() -> dict[str, bytes]:
    """Return the state of the libraries as they were found: what is so already need not be written."""
    return read_libraries()


def _writer(name: str, state: bytes) -> Action:
    return lambda module: write_library(name, module, state)


_NUMBERS = 1_000_000  # for what a rank makes; they are ints of C


def _number_apart(counter: Any, rank: int) -> None:
    """Have cvxpy, for which variables of one number are one, number a rank's as nobody else's."""
    counter.count += (rank + 1) * _NUMBERS


def _seed(seeds: Seeds, rank: int, watch: ImportWatch) -> None:
    random.seed(seeds.random + rank)
    watch.when_imported("numpy.random", lambda numpy: numpy.seed((seeds.numpy + rank) % NUMPY_LIMIT))
    watch.when_imported("cv2", lambda cv2: cv2.setRNGSeed(_drawn_by(seeds.numpy + rank)))
    watch.when_imported("torch", lambda torch: _seed_torch(torch, seeds.torch + rank))


def _drawn_by(seed: int) -> int:
    """Return a seed for OpenCV, an int of C: what it draws first of two neighbours differs by a constant."""
    return random.Random(seed).getrandbits(31)  # noqa: S311  # nothing secret


def _seed_torch(torch: Any, seed: int) -> None:
    if _knows_no_devices(torch):
        torch.default_generator.manual_seed(seed)  # all there is to seed
    else:
        torch.manual_seed(seed)


def _knows_no_devices(torch: Any) -> bool:
    """Tell whether torch was built for the CPU alone; torch 2.6 starts CUDA when asked, before the fork."""
    return bool(torch.__version__ >= (2, 7)) and torch.accelerator.current_accelerator() is None
