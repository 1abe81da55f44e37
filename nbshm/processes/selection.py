"""Waiting for any of many workers, and sending them on the way what could not be sent at once."""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
from collections.abc import Iterable

from nbshm.processes.listeners import Listener

# Seconds until descriptors are sent again where too many are on their way: nothing tells when there is room.
_CROWDED_SECONDS = 0.005


class Selection:
    """A selector that is kept in step with what the listeners still have open, and that others can wake."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        for fd in (self._wake_read, self._wake_write):
            os.set_blocking(fd, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        # Another thread may wake it while it is closed. Reentrant: so may a signal handler of this thread.
        self._waking = threading.RLock()

    def wait(self, listeners: Iterable[Listener], timeout: float) -> list[Listener]:
        """Wait at most `timeout` seconds; return the listeners that have something to hear."""
        listeners = list(listeners)
        crowded = self._flush(listeners)
        self._register(_wanted(listeners))
        ready = self._selector.select(min(timeout, _CROWDED_SECONDS) if crowded else timeout)
        self._calm()
        heard = {id(key.data) for key, _ in ready}
        return [listener for listener in listeners if id(listener) in heard]

    def wake(self) -> None:
        """Let `wait` return; from any thread or signal handler, also when it has been closed."""
        with self._waking, contextlib.suppress(BlockingIOError):  # full: it will wake
            if self._wake_write >= 0:
                os.write(self._wake_write, b"\0")

    def close(self) -> None:
        """Close the selector and its pipe."""
        self._selector.close()
        with self._waking:
            write_end, self._wake_write = self._wake_write, -1
        for fd in (self._wake_read, write_end):
            os.close(fd)

    @staticmethod
    def _flush(listeners: Iterable[Listener]) -> bool:
        """Send what sockets take; return whether some of it has to be tried again later."""
        channels = [listener.worker.channel for listener in listeners if listener.worker.channel.unsent]
        for channel in channels:
            channel.flush()
        return any(channel.crowded for channel in channels)

    def _register(self, wanted: dict[int, tuple[int, Listener]]) -> None:
        """Register what is wanted and forget the rest."""
        known = {key.fd: key for key in self._selector.get_map().values() if key.data is not None}
        for fd in known.keys() - wanted.keys():
            self._selector.unregister(fd)
        for fd, (events, listener) in wanted.items():
            if fd not in known:
                self._selector.register(fd, events, listener)
            elif known[fd].events != events:
                self._selector.modify(fd, events, listener)

    def _calm(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_read, 4096)


def _wanted(listeners: Iterable[Listener]) -> dict[int, tuple[int, Listener]]:
    return {
        fd: (_events(fd, listener), listener) for listener in listeners for fd in listener.open_descriptors()
    }


def _events(fd: int, listener: Listener) -> int:
    channel = listener.worker.channel
    can_send = fd == channel.fileno() and channel.unsent and not channel.crowded
    return selectors.EVENT_READ | (selectors.EVENT_WRITE if can_send else 0)
