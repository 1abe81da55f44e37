"""Whether a run stands still: for seconds nothing is said, and no rank uses a processor."""

from __future__ import annotations

from collections.abc import Callable

STILL_SECONDS = 5.0
"""Seconds of stillness after which a run is looked at: shorter ones are common in working programs."""

_IDLE = 0.02  # of one processor for each rank: what threads that wake now and then use


class Stillness:
    """Follows a run; tells each stillness once. `measure` returns the processor seconds used so far."""

    def __init__(self, measure: Callable[[], float], now: float) -> None:
        self._measure = measure
        self._since = now
        self._used: float | None = None
        self._told = False

    def end(self, now: float) -> None:
        """Note that something has been said."""
        self._since, self._used, self._told = now, None, False

    def has_come(self, now: float) -> bool:
        """Tell, once, whether it has lasted long enough."""
        if self._told:
            return False
        if self._used is None:
            self._used = self._measure()
        if now - self._since < STILL_SECONDS:
            return False
        if self._measure() - self._used > _IDLE * (now - self._since):
            self._since, self._used = now, None
            return False
        self._told = True
        return True
