"""Shared loops as one rank runs through them: what it takes of each, and whether the others have the same."""

from __future__ import annotations

import inspect
import itertools
import operator
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from nbshm.wire.board import Board
from nbshm.wire.first_items import FirstItem
from nbshm.wire.shared_loops import Range
from nbshm.worker.item_order import check_order
from nbshm.worker.items import Source, Streamed, source_of
from nbshm.worker.loop_reports import LoopReport, LoopReports

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


class Claims:
    """The shared loops of a rank, each by its number: the k-th claim of each rank is one."""

    def __init__(self, rank: int, board: Board, reports: LoopReports) -> None:
        self._rank = rank
        self._board = board
        self._reports = reports
        self._process = os.getpid()
        self._numbers = itertools.count()
        self._has_had_items = False
        self._open_loops: list[_OpenLoop] = []

    def claim(self, iterable: Iterable[T]) -> Claimed[T]:
        """Begin the next shared loop; see `nbshm.claim`."""
        self._refuse_forked_children()
        check_order(iterable)
        self._open_loops = [loop for loop in self._open_loops if loop.is_open]
        if any(loop.is_under_way for loop in self._open_loops):
            raise RuntimeError(
                "claim: it is in the loop of another claim. Ranks come to it more or less often, and their "
                "k-th claims must be given the same. Claim pairs of both, or use a plain loop. "
                "(If that loop was left, let go of what it went through.)"
            )
        source, loop = source_of(iterable, in_use=self._has_had_items), next(self._numbers)
        report = self._reports.report(total=source.length, shared=loop)
        items = self._reports.follow(self._items(source, loop), report)
        claimed = Claimed(items, report)
        self._open_loops.append(_OpenLoop(claimed, items))
        return claimed

    def _refuse_forked_children(self) -> None:
        """Raise in a child that the rank has forked: what that did with an item would be lost with it."""
        if os.getpid() != self._process:
            raise RuntimeError(
                f"claim: this process was forked by rank {self._rank}, and is no rank itself. Claim in the "
                "rank, and give the items to the process; end it by os._exit() where it is not to run on."
            )

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
        self._refuse_forked_children()
        with self._board.loop(number) as loop:
            if source.length is not None:
                self._check_length(source.length, loop.count(self._rank, source.length), loop.counted_by)
            taken = loop.take(self._rank)
            return (taken, loop.wanted_by_others(self._rank)) if taken else None

    def _compare(self, source: Source, number: int) -> None:
        """Find out whether the first items are those of the other ranks, as far as they have come by here."""
        seen, source.seen = source.seen, {}
        if not seen:
            return
        with self._board.first_items(number) as first:
            for position, text in seen.items():
                self._check_item(position, text, first.meet(position, FirstItem.of(self._rank, text)))

    def _check_item(self, position: int, here: str, other: FirstItem | None) -> None:
        if other is not None:
            raise ValueError(
                f"claim: item {position} is {_cut(here)} in rank {self._rank}, {_cut(other.text)} in rank "
                f"{other.rank}. Each rank must be given the same items in the same order, and ranks draw "
                "different random numbers: shuffle in the notebook before the cell, or by a generator with "
                "the same seed in each rank; sort what was a set (sorted(...)). "
                "Positions alone can be claimed, too: claim(range(len(...)))."
            )

    def _leave(self, number: int, stop: int, length: int) -> None:
        if self._board.is_open and os.getpid() == self._process:
            with self._board.loop(number) as loop:
                loop.leave(self._rank, Range(stop - length, stop))

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
            self._check_length(here, loop.count(self._rank, here), loop.counted_by, has_more=has_more)

    def _check_length(self, here: int, there: int, other: int, *, has_more: bool = False) -> None:
        if here != there:
            # Who has more does not go through the rest to count it: there may be no end to that.
            number = f"more than {there}" if has_more else here
            raise ValueError(
                f"claim: rank {self._rank} has {number} items, rank {other} has {there}. "
                "The first, second, ... claim of each rank must be given the same items in the same order."
            )


def _cut(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 3]}..."
