"""What a cell calls to work together with the other ranks: `claim`, `barrier`, `lock`, `device`, `progress`.

Outside a run there is one rank of one, so that a cell without its first line is the serial program.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TYPE_CHECKING, SupportsFloat, TypeVar

from nbshm.events import AT_BARRIER, Event, Resumed, Waiting
from nbshm.wire.board import Board
from nbshm.wire.run_lock import RunLock
from nbshm.worker.claims import Claimed, Claims
from nbshm.worker.loop_reports import LoopReports

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


class Rank:
    """One rank of a run, and how it reaches the others.

    `wait_release` waits until all ranks are at the barrier and returns None, or why they never will be.
    """

    def __init__(
        self,
        number: int,
        nprocs: int,
        *,
        say: Callable[[Event], None],
        wait_release: Callable[[], str | None],
        board: Board,
    ) -> None:
        self.number = number
        self.nprocs = nprocs
        self._say = say
        self._wait_release = wait_release
        self._board = board
        self._process = os.getpid()
        self.loops = LoopReports(number, nprocs, say)
        self._claims = Claims(number, board, self.loops)

    def claim(self, iterable: Iterable[T]) -> Claimed[T]:
        """See `nbshm.claim`."""
        return self._claims.claim(iterable)

    def barrier(self) -> None:
        """See `nbshm.barrier`."""
        if os.getpid() != self._process:
            raise RuntimeError(
                f"barrier: this process was forked by rank {self.number}, and is no rank itself: nobody "
                "waits for it. Call barrier in the rank; end a forked process by os._exit() where it is not "
                "to run on."
            )
        self._say(Waiting(rank=self.number, at=AT_BARRIER))
        broken = self._wait_release()
        if broken is not None:
            raise threading.BrokenBarrierError(f"barrier: {broken}")
        self._say(Resumed(rank=self.number))

    def lock(self) -> RunLock:
        """See `nbshm.lock`."""
        return self._board.lock

    def progress(self, iterable: Iterable[T], total: int | None, label: str) -> Iterator[T]:
        """See `nbshm.progress`."""
        if isinstance(iterable, Claimed):
            iterable.report.label = label or iterable.report.label
            return iterable
        return self.loops.follow(iterable, self.loops.report(label, total))


class OnlyLock:
    """What `nbshm.lock()` gives outside a run: it excludes other threads.

    In ranks it is the lock of their run: it is sent as that, and a forked copy takes that one.
    """

    def __init__(self) -> None:
        self._threads = threading.RLock()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002  # as in threading
        """Take the lock, and tell whether it is this thread's now; it may be taken again."""
        return self._meant().acquire(blocking, timeout)

    def release(self) -> None:
        """Give it back, once for each time that it was taken."""
        self._meant().release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __reduce__(self) -> tuple[Callable[[], RunLock], tuple[()]]:
        return _lock_of_the_run, ()

    def _meant(self) -> RunLock | threading.RLock:
        return self._threads if isinstance(_here.rank, OnlyRank) else _here.rank.lock()


def _lock_of_the_run() -> RunLock:
    if isinstance(_here.rank, OnlyRank):
        raise TypeError("nbshm.lock() is a lock of a parallel cell's ranks. Use a lock of multiprocessing.")
    return _here.rank.lock()


class OnlyRank:
    """The one rank that there is outside a run: nobody to wait for, nobody to share with."""

    number = 0
    nprocs = 1

    def __init__(self) -> None:
        self._lock = OnlyLock()

    def claim(self, iterable: Iterable[T]) -> Iterator[T]:
        """Claim everything."""
        return iter(iterable)

    def barrier(self) -> None:
        """Wait for nobody."""

    def lock(self) -> OnlyLock:
        """Exclude other threads."""
        return self._lock

    def progress(self, iterable: Iterable[T], _total: int | None, _label: str) -> Iterator[T]:
        """Pass everything on."""
        return iter(iterable)


class _Here:
    """Which rank this process is, which is as much a fact of the process as its pid."""

    def __init__(self) -> None:
        self.rank: Rank | OnlyRank = OnlyRank()


_here = _Here()


@contextlib.contextmanager
def being(rank: Rank) -> Iterator[Rank]:
    """Be a rank: what the code in this process calls is done by it, while this is entered."""
    before, _here.rank = _here.rank, rank
    try:
        yield rank
    finally:
        _here.rank = before


def claim(iterable: Iterable[T]) -> Iterator[T]:
    """Share a loop among the ranks: each item goes to exactly one of them, as soon as one is free.

    The first `claim` of each rank is one shared loop, the second another, and so on. Any iterable will do
    (`range`, a list, `np.ndindex`, a generator, which each rank runs through) if it has the same items in the
    same order in each rank: items are matched by position. A set is refused, also in `enumerate` and its
    like, as its order differs between processes. After `break` the rest goes to the ranks that are still in
    the loop. There is no barrier at the end: call `barrier()` before reading what others wrote. Which rank
    gets which item does not repeat: seed by item, not by rank, where that matters.

        for i, j in nbshm.claim(np.ndindex(out.shape)):
            out[i, j] = smooth(grid[i, j])

    Raises ValueError in a rank that has another number of items than the rank that counted them first, or
    others (as far as the first few tell: numbers, texts, and tuples, lists and small arrays of them), and
    RuntimeError in the loop of another claim, which ranks come to a different number of times.
    """
    return _here.rank.claim(iterable)


def barrier() -> None:
    """Wait until all ranks have called this as often.

    Raises `threading.BrokenBarrierError` if a rank has ended and can't arrive any more.
    """
    _here.rank.barrier()


def lock() -> RunLock | OnlyLock:
    """Return the run's lock: one thread of one rank has it at a time.

    It is used as `threading.RLock()` is: by `with`, or by `acquire(blocking=True, timeout=-1)`, which tells
    whether it was taken, and `release()`. Who has it may take it again. If a rank dies in it, it is free.

        with nbshm.lock():
            total += part
    """
    return _here.rank.lock()


def device() -> torch.device:
    """Return the device for this rank: `cuda:0` for rank 0 and so on, round and round; `cpu` without CUDA."""
    from nbshm.worker.devices import device_of  # noqa: PLC0415  # torch is slow to import

    return device_of(_here.rank.number)


def progress(iterable: Iterable[T], total: int | None = None, label: str = "") -> Iterator[T]:
    """Pass an iterable's items on, and show how far this rank has come.

    `total` is the number of items; it need not be given where `len(iterable)` tells it.

    Raises TypeError if `total` is no number.
    """
    if total is not None and not isinstance(total, SupportsFloat):
        raise TypeError(
            f"progress: total={total!r} is no number of items. A loop's name is its label: label=..."
        )
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    return _here.rank.progress(iterable, total, label)
