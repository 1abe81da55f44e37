"""The run's barrier, as the kernel keeps it: ranks say that they wait, and are told to go on."""

from __future__ import annotations

from nbshm.events import AT_BARRIER, Event, Result, Waiting
from nbshm.wire.messages import Release
from nbshm.words import ranks_in_words


class Barrier:
    """Who waits, and who never will come.

    A rank that has finished its body can't arrive any more: those who wait for it are told so. One that has
    failed is no reason to break the barrier, since the others are ended then, and should not seem to have
    failed too.
    """

    def __init__(self, nprocs: int) -> None:
        self._nprocs = nprocs
        self._waiting: set[int] = set()
        self._gone: set[int] = set()

    def see(self, event: Event) -> dict[int, Release]:
        """Take in an event; return what to tell to which rank."""
        match event:
            case Waiting(rank=rank, at=at) if at == AT_BARRIER:
                self._waiting.add(rank)
            case Result(rank=rank):
                self._gone.add(rank)
            case _:
                return {}
        return self._releases()

    def _releases(self) -> dict[int, Release]:
        if len(self._waiting) == self._nprocs:
            return self._release(Release())
        if self._gone and self._waiting:
            has = "has" if len(self._gone) == 1 else "have"
            broken = f"{ranks_in_words(self._gone)} {has} finished and can't arrive at the barrier any more"
            return self._release(Release(broken=broken))
        return {}

    def _release(self, release: Release) -> dict[int, Release]:
        released, self._waiting = self._waiting, set()
        return dict.fromkeys(sorted(released), release)
