"""What fork asks of a run: one thread in each worker, no CUDA in the kernel before it, no threads there."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType

from nbshm.machine.proc import thread_names
from nbshm.options import OptionError, Options

_POOLS = {
    "concurrent.futures.thread": "a ThreadPoolExecutor",
    "concurrent.futures.process": "a ProcessPoolExecutor",
    "multiprocessing.pool": "a pool of multiprocessing",
    "joblib.externals.loky.process_executor": "joblib",
}
"""What has threads that wait for work, by the modules in which they wait."""

_HARMLESS = frozenset({"ipykernel", "torch", "zmq"})
"""Libraries whose threads ranks do without, or never ask for."""


def as_fork_allows(options: Options) -> Options:
    """Return how forked workers may run: with one thread, because torch's threads do not survive a fork.

    After one threaded operation of torch in the kernel the first of a forked child never returns, and
    nothing tells whether there has been one.

    Raises
    ------
    OptionError
        Fork can't do what is asked for.

    """
    torch = sys.modules.get("torch")
    if torch is None:
        return options
    if torch.cuda.is_initialized():
        raise OptionError(
            "start method 'fork' is refused: CUDA is initialised in this kernel. "
            "Use start_method=forkserver or spawn."
        )
    if options.threads not in {None, 1}:
        raise OptionError(
            f"threads={options.threads} is refused under start_method=fork: torch's threads do not survive "
            "a fork. Use threads=1, or start_method=forkserver or spawn."
        )
    return replace(options, threads=1)


def left_behind() -> list[str]:
    """Name what has its work done by threads of this process, which no forked worker has.

    In a worker it looks as if they were there, and waits for them for ever. The BLAS starts its own anew;
    for torch's see `as_fork_allows`.
    """
    return [*sorted(set(_libraries())), *sorted(set(_pools()))]


def _libraries() -> Iterator[str]:
    """Yield the imported libraries that have named compiled threads after themselves (`polars-0`).

    Those without a name of their own have that of the process.
    """
    names = thread_names(os.getpid())
    pythons = {thread.native_id for thread in threading.enumerate()}
    for thread, name in names.items():
        library = re.split(r"[^a-z]", name.lower())[0]
        if thread not in pythons and name != names[os.getpid()] and library in sys.modules.keys() - _HARMLESS:
            yield library


def _pools() -> Iterator[str]:
    """Yield the pools and executors that have threads; a rank has an event loop of its own, with another."""
    frames = sys._current_frames()  # noqa: SLF001  # the documented way
    of_loops = {thread.ident for thread in threading.enumerate() if thread.name.startswith("asyncio_")}
    for thread in frames.keys() - of_loops - {threading.get_ident()}:
        yield from (_POOLS[module] for module in _modules(frames[thread]) if module in _POOLS)


def _modules(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield str(frame.f_globals.get("__name__"))
        frame = frame.f_back
