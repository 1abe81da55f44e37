"""The first items of a shared loop, as those ranks have them that came to them first.

`FirstItems` is plain state. Each rank changes it under the board's lock: nothing here knows of processes.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field

COUNT = 8
"""So many items of a loop are compared: what is in another order differs early, or hardly at all."""

_DIGEST = 8
_ENTRY = struct.Struct(f"=q{_DIGEST}s40s")


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstItem:
    """An item as a rank has it; `text` is its beginning."""

    rank: int
    digest: bytes
    text: str

    @classmethod
    def of(cls, rank: int, text: str) -> FirstItem:
        """Make one of the text that tells the item from others."""
        encoded = text.encode(errors="backslashreplace")
        return cls(rank=rank, digest=hashlib.blake2b(encoded, digest_size=_DIGEST).digest(), text=text)


@dataclass(slots=True)
class FirstItems:
    """What is known of the first items of one loop, by position."""

    known: dict[int, FirstItem] = field(default_factory=dict)

    @classmethod
    def unpack(cls, data: bytes) -> FirstItems:
        """Read the state from the board; what was never written is a loop of which nothing is known."""
        entries = enumerate(_ENTRY.iter_unpack(data.ljust(cls.size(), b"\0")))
        return cls(
            {
                position: FirstItem(rank=number - 1, digest=digest, text=_decoded(text))
                for position, (number, digest, text) in entries
                if number
            }
        )

    def pack(self) -> bytes:
        """Return the state as bytes, of the same size whatever it is."""
        return b"".join(self._entry(position) for position in range(COUNT))

    @staticmethod
    def size() -> int:
        """Return the number of bytes of the state."""
        return COUNT * _ENTRY.size

    def meet(self, position: int, item: FirstItem) -> FirstItem | None:
        """Note an item that a rank has; return the one that another rank has there, if that differs."""
        known = self.known.setdefault(position, item)
        return None if known.digest == item.digest else known

    def _entry(self, position: int) -> bytes:
        item = self.known.get(position)
        if item is None:
            return bytes(_ENTRY.size)
        return _ENTRY.pack(item.rank + 1, item.digest, item.text.encode(errors="backslashreplace"))


def _decoded(text: bytes) -> str:
    return text.rstrip(b"\0").decode(errors="ignore")  # it may be cut within a character
