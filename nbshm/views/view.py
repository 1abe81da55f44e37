"""What every view of a run is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from nbshm.events import Event
from nbshm.failures.reports import RankFailure, Stopped


class View(Protocol):
    """Shows a run while it goes on and when it has ended."""

    def begin(self, nprocs: int, *, stop: Callable[[], None]) -> None:
        """Get ready for a run of that many ranks; `stop`, called in any thread, ends it."""

    def show(self, event: Event) -> None:
        """Take the next event of the run."""

    def shows_failures(self, failures: Sequence[RankFailure]) -> bool:
        """Tell whether it shows, when it has finished, all that there is to read about these failures."""

    def finish(self, *, failures: Sequence[RankFailure] = (), stopped: Sequence[Stopped] = ()) -> None:
        """Show what is still held back, and what stays; a second call does nothing."""
