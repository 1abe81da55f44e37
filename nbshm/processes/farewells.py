"""Ranks that have finished, and stay for others that have what they sent, as the kernel sees them."""

from __future__ import annotations

from nbshm.events import Ended, Event, Waiting
from nbshm.wire.messages import BORROWERS, Alone


class Farewells:
    """Who stays for others, until no rank is left that does anything else.

    Then nobody in the run can give anything back, or take it, any more: those that stay are told so.
    """

    def __init__(self, nprocs: int) -> None:
        self._busy = set(range(nprocs))
        self._staying: set[int] = set()

    def see(self, event: Event) -> dict[int, Alone]:
        """Take in an event; return what to tell to which rank."""
        match event:
            case Waiting(rank=rank, at=at) if at == BORROWERS:
                self._busy.discard(rank)
                self._staying.add(rank)
            case Ended(rank=rank):
                self._busy.discard(rank)
                self._staying.discard(rank)
            case _:
                return {}
        if self._busy:
            return {}
        told, self._staying = self._staying, set()
        return dict.fromkeys(sorted(told), Alone())
