"""Where in the notebook a worker is, written down to be read when the worker has died without a word.

A thread looks at the main thread's stack from time to time and notes the innermost line of a cell, on a page
of memory that the kernel has too.
"""

from __future__ import annotations

import _thread
import contextlib
import mmap
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from types import FrameType

from nbshm.processes.places import write_place

# Seconds between two looks: few at first, as much that goes wrong does so at once; each time twice as many.
_FIRST_SECONDS = 0.001
_LONGEST_SECONDS = 0.05


class Whereabouts:
    """The page on which this worker's place stands; takes the descriptor over."""

    def __init__(self, fd: int) -> None:
        self._page = mmap.mmap(fd, 0)
        os.close(fd)

    @contextlib.contextmanager
    def followed(self, cells: Mapping[str, int]) -> Iterator[None]:
        """Follow the calling thread; `cells` are the numbers of cells by the file names of their code."""
        ended = threading.Event()
        # Not threading.Thread: to start and to join one is to wait for the other thread's turn, which takes
        # milliseconds where there are more ranks than cores. This one goes by itself when the body has ended.
        _thread.start_new_thread(self._follow, (threading.get_ident(), cells, ended))
        try:
            yield
        finally:
            ended.set()

    def _follow(self, thread: int, cells: Mapping[str, int], ended: threading.Event) -> None:
        pause, last = _FIRST_SECONDS, ""
        while not ended.wait(pause):
            place = place_in_cells(sys._current_frames().get(thread), cells)  # noqa: SLF001  # the documented way
            if place and place != last:
                write_place(self._page, place)
                last = place
            pause = min(2 * pause, _LONGEST_SECONDS)


def place_in_cells(frame: FrameType | None, cells: Mapping[str, int]) -> str:
    """Return where the innermost code of a cell is, as a person says it; empty where no cell's code runs."""
    while frame is not None:
        cell = cells.get(frame.f_code.co_filename)
        if cell is not None:
            return f"In [{cell}] line {frame.f_lineno}"
        frame = frame.f_back
    return ""
