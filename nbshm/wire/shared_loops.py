"""How the ranks share a loop: which items are taken, which are left, and how many there are.

A `SharedLoop` is plain state. Each rank changes it under the board's lock: nothing here knows of processes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

# Chunks shrink with what remains, so that ranks end together however uneven the items are (Polychronopoulos
# and Kuck, "Guided self-scheduling", 1987); half of an even share leaves room for ranks that start late.
_SHARES = 2
# Where nobody knows the length chunks grow with what has been taken: the last are some 3 % of a rank's share.
_GROWTH = 32
_HEADER = struct.Struct("=qqq")
_RANGES = struct.Struct("=qqqq")


@dataclass(frozen=True, slots=True)
class Range:
    """Positions from `start` up to `stop`."""

    start: int
    stop: int

    def __len__(self) -> int:
        return max(0, self.stop - self.start)


NOTHING = Range(0, 0)


@dataclass(slots=True)
class SharedLoop:
    """The state of one loop: positions below `position` have been given out.

    `held` is what each rank works at, `left` what each rank left when it broke out of the loop.
    """

    held: list[Range]
    left: list[Range]
    position: int = 0
    length: int | None = None
    counted_by: int = 0

    @classmethod
    def unpack(cls, data: bytes, nprocs: int) -> SharedLoop:
        """Read the state from the board; what was never written is a loop that has not begun."""
        data = data.ljust(cls.size(nprocs), b"\0")
        position, length, counted_by = _HEADER.unpack_from(data)
        ranges = list(_RANGES.iter_unpack(data[_HEADER.size :]))
        return cls(
            held=[Range(*numbers[:2]) for numbers in ranges],
            left=[Range(*numbers[2:]) for numbers in ranges],
            position=position,
            length=None if length == 0 else length - 1,
            counted_by=counted_by,
        )

    def pack(self) -> bytes:
        """Return the state as bytes, of the same size whatever it is."""
        length = 0 if self.length is None else self.length + 1
        header = _HEADER.pack(self.position, length, self.counted_by)
        both = zip(self.held, self.left, strict=True)
        return header + b"".join(_RANGES.pack(h.start, h.stop, left.start, left.stop) for h, left in both)

    @staticmethod
    def size(nprocs: int) -> int:
        """Return the number of bytes of a loop's state."""
        return _HEADER.size + nprocs * _RANGES.size

    def take(self, rank: int) -> Range:
        """Give a rank its next items, those first that another has left; `NOTHING` when there are no more."""
        self.held[rank] = NOTHING
        self.held[rank] = self._take_left() or self._take_new()
        return self.held[rank]

    def leave(self, rank: int, rest: Range) -> None:
        """Take back what a rank leaves of the items that it holds."""
        self.held[rank] = NOTHING
        self.left[rank] = rest

    def count(self, rank: int, length: int) -> int:
        """Note that a rank has so many items; return how many the first rank that knew has."""
        if self.length is None:
            self.length, self.counted_by = length, rank
        return self.length

    def wanted_by_others(self, rank: int) -> list[Range]:
        """Return the positions that may still come to this rank although others hold them or held them."""
        held = [held for other, held in enumerate(self.held) if other != rank]
        return sorted((found for found in (*held, *self.left) if found), key=lambda found: found.start)

    def _take_left(self) -> Range:
        for rank, left in enumerate(self.left):
            if left:
                stop = left.start + self._share(len(left))
                self.left[rank] = Range(stop, left.stop)
                return Range(left.start, stop)
        return NOTHING

    def _take_new(self) -> Range:
        start = self.position
        if self.length is None:
            self.position += max(1, start // (_GROWTH * len(self.held)))
        else:
            self.position += self._share(self.length - start)
        return Range(start, self.position)

    def _share(self, remaining: int) -> int:
        return min(max(0, remaining), max(1, remaining // (_SHARES * len(self.held))))
