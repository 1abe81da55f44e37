"""What ranks log below WARNING: the notebook's handlers, which would show it, are not there.

What no handler takes Python hands to `logging.lastResort`, which shows warnings and what is worse.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import accumulate

_UNHEARD = (
    "logging handlers are not carried over, so what is logged below WARNING is not shown. "
    "Call logging.basicConfig() in the cell."
)


def tell_of_unheard_records(handled: frozenset[str], tell: Callable[[str], None]) -> None:
    """Have a line told when this process logs what no handler takes and Python does not show; one a run.

    `handled` are the names of the loggers to which the notebook has given handlers; the root's is "".
    """
    if handled:
        logging.lastResort = _LastResort(logging.lastResort, handled, tell)


class _LastResort(logging.Handler):
    """Hands on to the last resort that was there what that shows."""

    def __init__(
        self, before: logging.Handler | None, handled: frozenset[str], tell: Callable[[str], None]
    ) -> None:
        super().__init__(logging.NOTSET)
        self._before = before
        self._handled = handled
        self._tell = tell
        self._has_told = False

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a record on, or say that it is not shown."""
        if self._before is not None and record.levelno >= self._before.level:
            self._before.handle(record)
        elif not self._has_told and self._is_handled(record.name):
            self._has_told = True
            self._tell(_UNHEARD)

    def _is_handled(self, name: str) -> bool:
        """Tell whether a handler in the notebook takes what that logger, or one above it, logs."""
        above = accumulate(name.split("."), "{}.{}".format)
        return not self._handled.isdisjoint(["", *above])
