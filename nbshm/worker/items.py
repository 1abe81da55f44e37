"""The items of a shared loop as one rank has them, from which it takes those that are given to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, TypeAlias

from nbshm.wire.first_items import COUNT
from nbshm.wire.shared_loops import Range
from nbshm.worker.item_order import reads_shared_memory
from nbshm.worker.item_texts import can_change, text_of


class Sliced:
    """Items of which any range can be had at once: a list, a tuple, a `range`.

    `seen` are the texts of its first items, by position. (See `source_of` for `in_use`.)
    """

    def __init__(self, items: Sequence[Any], *, in_use: bool = False) -> None:
        self._items = items
        self.length: int | None = len(items)
        self.in_use = in_use
        self.seen = dict(_texts(items[:COUNT], 0, in_use=in_use))

    def take(self, wanted: Range, _others: Iterable[Range]) -> Sequence[Any]:
        """Return the items of a range."""
        return self._items[wanted.start : wanted.stop]


class Streamed:
    """Items that come one after the other, and never again.

    Those that another rank holds are kept, because they come back if that rank breaks out of its loop.
    `seen` are the texts of the first that have come, by position. (See `source_of` for `in_use`.)
    """

    def __init__(self, items: Iterable[Any], length: int | None, *, in_use: bool = False) -> None:
        self._rest = iter(items)
        self.length = length
        self.in_use = in_use
        self.position = 0
        self.seen: dict[int, str] = {}
        self._kept: list[tuple[Range, list[Any]]] = []

    def take(self, wanted: Range, others: Iterable[Range]) -> Sequence[Any]:
        """Return the items of a range, fewer if there are no more; keep those before it that others hold."""
        others = list(others)
        needed = [wanted, *others]
        self._kept = [kept for kept in self._kept if any(_overlap(kept[0], range_) for range_ in needed)]
        if wanted.start < self.position:
            return [item for kept, items in self._kept for item in _part(kept, items, wanted)]
        self.skip_to(wanted.start, others)
        return self._next(len(wanted))

    def skip_to(self, position: int, others: Iterable[Range] = ()) -> None:
        """Go on to a position, or to the end if that comes first."""
        for other in others:
            kept = Range(max(other.start, self.position), min(other.stop, position))
            if kept:
                self._drop(kept.start - self.position)
                self._kept.append((kept, self._next(len(kept))))
        self._drop(position - self.position)

    def has_ended(self) -> bool:
        """Tell whether there are no items after those that have been asked for; asks for one more."""
        return not self._next(1)

    def _next(self, number: int) -> list[Any]:
        items = list(islice(self._rest, number))
        if self.position < COUNT:
            self.seen.update(_texts(items[: COUNT - self.position], self.position, in_use=self.in_use))
        self.position += len(items)
        return items

    def _drop(self, number: int) -> None:
        # In pieces, so that what is dropped doesn't pile up in a list as long as the loop.
        while number > 0 and (dropped := len(self._next(min(number, 1024)))):
            number -= dropped


Source: TypeAlias = Sliced | Streamed


def source_of(iterable: Iterable[Any], *, in_use: bool = False) -> Source:
    """Choose how to take items from an iterable.

    Once this rank has worked at items (they are `in_use`), it may have written into those that can be written
    into, and they have no text any more. Nor have numbers from memory into which other ranks write.
    """
    in_use = in_use or reads_shared_memory(iterable)
    if type(iterable) in (list, tuple, range):  # a subclass may slice as it likes
        return Sliced(iterable, in_use=in_use)  # type: ignore[arg-type]  # mypy does not narrow by `type(...) in`
    return Streamed(iterable, len(iterable) if isinstance(iterable, Sized) else None, in_use=in_use)


def _overlap(one: Range, other: Range) -> bool:
    return one.start < other.stop and other.start < one.stop


def _part(kept: Range, items: list[Any], wanted: Range) -> Iterator[Any]:
    return islice(items, max(0, wanted.start - kept.start), max(0, wanted.stop - kept.start))


def _texts(items: Iterable[Any], position: int, *, in_use: bool) -> Iterator[tuple[int, str]]:
    """Yield the texts of items with their positions, of those that have one."""
    for number, item in enumerate(items, position):
        text = None if in_use and can_change(item) else text_of(item)
        if text is not None:
            yield number, text
