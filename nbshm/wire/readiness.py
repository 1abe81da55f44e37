"""Waiting for one descriptor, whatever its number: `select.select` takes none above 1023."""

from __future__ import annotations

import select


def wait_readable(fd: int, timeout: float | None = None) -> bool:
    """Wait until the descriptor can be read or has come to its end, at most so long; tell whether it did."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(None if timeout is None else timeout * 1000))
