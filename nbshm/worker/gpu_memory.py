"""How much memory a rank has on GPUs, told once CUDA is in use and when it has changed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from nbshm.events import Event, GpuMemory

BETWEEN_LOOKS = 1.0
"""Seconds between two looks."""


class GpuNotices:
    """Notices how much memory torch holds on GPUs here; nothing is imported or initialised for it."""

    def __init__(self, rank: int, say: Callable[[Event], None]) -> None:
        self._rank = rank
        self._say = say
        self._told = 0
        self._next_look = 0.0

    def look(self) -> None:
        """Look if it is time, and say what has changed."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + BETWEEN_LOOKS
        held = _held(sys.modules.get("torch"))
        if held != self._told:
            self._told = held
            self._say(GpuMemory(rank=self._rank, nbytes=held))


def _held(torch: Any) -> int:
    """Return the bytes that torch's allocator has, on all devices; the context itself is not among them."""
    cuda = getattr(torch, "cuda", None)  # None while torch is being imported
    if cuda is None or not cuda.is_initialized():
        return 0
    return sum(cuda.memory_reserved(device) for device in range(cuda.device_count()))
