"""What a cell calls to work together with the other ranks: `claim`, `barrier`, `lock`, `device`, `progress`.

Outside a run there is one rank of one, so that a cell without its first line is the serial program.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import operator
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, SupportsFloat, TypeVar

from nbshm.events import AT_BARRIER, Event, Resumed, Waiting
from nbshm.wire.board import Board
from nbshm.wire.first_items import FirstItem
from nbshm.wire.run_lock import RunLock
from nbshm.wire.shared_loops import Range
from nbshm.worker.item_order import check_order
from nbshm.worker.items import Source, Streamed, source_of
from nbshm.worker.loop_reports import LoopReport, LoopReports

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

_CHARACTERS = 36  # of an item are shown in an error


class Claimed(Iterator[T]):
    """A rank's items of a shared loop, to be run through once, and what tells how far it has come."""

    def __init__(self, items: Iterator[T], report: LoopReport) -> None:
        self.report = report
        self._items = items

    def __iter__(self) -> Iterator[T]:  # noqa: PYI034  # not this object: a `for` that is left lets go of it
        return self._items

    def __next__(self) -> T:
        return next(self._items)


class _OpenLoop:
    """A claim that has not come to its end, in this thread."""

    def __init__(self, claimed: Claimed[Any], items: Iterator[Any]) -> None:
        self._claimed = weakref.ref(claimed)
        self._items: Callable[[], Any] = weakref.ref(items)
        self._thread = threading.get_ident()

    @property
    def is_open(self) -> bool:
        """Whether it may go on."""
        return self._items() is not None

    @property
    def is_under_way(self) -> bool:
        """Whether a `for` of this thread is in it: that alone has the items, which end when it is left."""
        items = self._items()
        if items is None or self._claimed() is not None or self._thread != threading.get_ident():
            return False
        return inspect.getgeneratorstate(items) == inspect.GEN_SUSPENDED


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
        self._claims = itertools.count()
        self._has_had_items = False
        self._open_loops: list[_OpenLoop] = []
        self.loops = LoopReports(number, nprocs, say)

    def claim(self, iterable: Iterable[T]) -> Claimed[T]:
        """See `nbshm.claim`."""
        check_order(iterable)
        self._open_loops = [loop for loop in self._open_loops if loop.is_open]
        if any(loop.is_under_way for loop in self._open_loops):
            raise RuntimeError(
                "claim: it is in the loop of another claim. Ranks come to it more or less often, and their "
                "k-th claims must be given the same. Claim pairs of both, or use a plain loop. "
                "(If that loop was left, let go of what it went through.)"
            )
        source, loop = source_of(iterable, in_use=self._has_had_items), next(self._claims)
        report = self.loops.report(total=source.length, shared=loop)
        items = self.loops.follow(self._items(source, loop), report)
        claimed = Claimed(items, report)
        self._open_loops.append(_OpenLoop(claimed, items))
        return claimed

    def _items(self, source: Source, loop: int) -> Iterator[Any]:
        self._compare(source, loop)  # a list's first items, which a rank that comes late may take none of
        while turn := self._take(source, loop):
            wanted, others = turn
            items = source.take(wanted, others)
            self._compare(source, loop)
            self._has_had_items = source.in_use = True
            rest = iter(items)
            try:
                yield from rest
            except BaseException:  # the loop is left: by break, or by what was raised into it
                self._leave(loop, wanted.start + len(items), operator.length_hint(rest))
                raise
            if len(items) < len(wanted):
                break
        self._check_the_end(source, loop)

    def _take(self, source: Source, number: int) -> tuple[Range, list[Range]] | None:
        with self._board.loop(number) as loop:
            if source.length is not None:
                self._check_length(source.length, loop.count(self.number, source.length), loop.counted_by)
            taken = loop.take(self.number)
            return (taken, loop.wanted_by_others(self.number)) if taken else None

    def _compare(self, source: Source, number: int) -> None:
        """Find out whether the first items are those of the other ranks, as far as they have come by here."""
        seen, source.seen = source.seen, {}
        if not seen:
            return
        with self._board.first_items(number) as first:
            for position, text in seen.items():
                self._check_item(position, text, first.meet(position, FirstItem.of(self.number, text)))

    def _check_item(self, position: int, here: str, other: FirstItem | None) -> None:
        if other is not None:
            raise ValueError(
                f"claim: item {position} is {_cut(here)} in rank {self.number}, {_cut(other.text)} in rank "
                f"{other.rank}. Each rank must be given the same items in the same order, and ranks draw "
                "different random numbers: shuffle in the notebook before the cell, or by a generator with "
                "the same seed in each rank; sort what was a set (sorted(...)). "
                "Positions alone can be claimed, too: claim(range(len(...)))."
            )

    def _leave(self, number: int, stop: int, length: int) -> None:
        if self._board.is_open:
            with self._board.loop(number) as loop:
                loop.leave(self.number, Range(stop - length, stop))

    def _check_the_end(self, source: Source, number: int) -> None:
        """Find out whether all ranks had the same items, where the items didn't say how many they are."""
        if not isinstance(source, Streamed) or source.length is not None:
            return
        with self._board.loop(number) as loop:
            length = loop.length
        if length is not None:
            source.skip_to(length)
        self._compare(source, number)
        has_more = not source.has_ended()
        here = source.position
        with self._board.loop(number) as loop:
            self._check_length(here, loop.count(self.number, here), loop.counted_by, has_more=has_more)

    def _check_length(self, here: int, there: int, other: int, *, has_more: bool = False) -> None:
        if here != there:
            # Who has more does not go through the rest to count it: there may be no end to that.
            number = f"more than {there}" if has_more else here
            raise ValueError(
                f"claim: rank {self.number} has {number} items, rank {other} has {there}. "
                "The first, second, ... claim of each rank must be given the same items in the same order."
            )

    def barrier(self) -> None:
        """See `nbshm.barrier`."""
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


def _cut(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 3]}..."


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
