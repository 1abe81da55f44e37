"""Where in the notebook a worker is, written down to be read when it has died without a word, or is asked.

A thread looks at the main thread's stack from time to time and notes the innermost line of a cell, in a file
in memory that the kernel has too. It also answers the kernel's questions for all stacks. What else may have
to be written there, `faulthandler` does without a thread's turn: on a signal of the kernel's, and when the
process dies of a fault.
"""

from __future__ import annotations

import _thread
import faulthandler
import mmap
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TypeAlias

from nbshm.wire.whereabouts import (
    DUMP_SIGNAL,
    DUMPS,
    note_answer,
    unanswered,
    write_place,
    write_thread,
    write_unheard,
)
from nbshm.words import line_in_words
from nbshm.worker.stack_dumps import dump_of

Notice: TypeAlias = Callable[[FrameType | None], None]

# Seconds between two looks: few at first, as much that goes wrong does so at once; each time twice as many.
_FIRST_SECONDS = 0.001
_LONGEST_SECONDS = 0.05


class Whereabouts:
    """What this worker writes down about its main thread, which must make this; takes the descriptor over."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._page = mmap.mmap(fd, DUMPS)
        self._last = ""
        self._stir = threading.Event()
        self._closing = False
        self._gone = threading.Event()
        self._gone.set()
        self._have_dumps_written()
        write_thread(self._page, threading.get_ident())

    def follow(self, cells: Mapping[str, int], notice: Notice) -> None:
        """Follow the main thread from now on; `cells` are the numbers of cells by the names of their code.

        `notice` is called with the main thread's innermost frame at each look.
        """
        self._gone.clear()
        try:
            # It is born with SIGINT blocked: a thread that begins takes what waits for its process, and an
            # interrupt that it took would not end what the main thread waits in.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            # Not threading.Thread: to start one is to wait for its first turn, which takes milliseconds
            # where there are more ranks than cores. It goes on to the end of the process, which may be waited
            # for too.
            _thread.start_new_thread(self._follow, (threading.get_ident(), cells, notice))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def look_closely(self) -> None:
        """Look often for a moment: something begins."""
        self._stir.set()

    def take_faults(self) -> None:
        """Have the stacks written here when a fault kills this process; a forked child's go to stderr."""
        faulthandler.enable(file=self._fd)
        os.register_at_fork(after_in_child=_tell_faults_on_stderr)

    def note_unheard(self) -> None:
        """Write down that what this worker says is not heard any more; memory needs no descriptor."""
        write_unheard(self._page)

    def close(self) -> None:
        """Follow no more, and take everything back."""
        self._closing = True
        self._stir.set()
        self._gone.wait()
        faulthandler.unregister(DUMP_SIGNAL)
        self._page.close()
        os.close(self._fd)

    def _have_dumps_written(self) -> None:
        os.lseek(self._fd, DUMPS, os.SEEK_SET)
        faulthandler.register(DUMP_SIGNAL, file=self._fd, all_threads=True)
        # Only the thread that follows takes it, whatever others do: nothing they wait for is cut short.
        signal.pthread_sigmask(signal.SIG_BLOCK, {DUMP_SIGNAL})

    def _follow(self, thread: int, cells: Mapping[str, int], notice: Notice) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {DUMP_SIGNAL})
        pause = _FIRST_SECONDS
        while not self._closing:
            if self._stir.wait(pause):
                self._stir.clear()
                pause = _FIRST_SECONDS
            frame = sys._current_frames().get(thread)  # noqa: SLF001  # the documented way
            self._look(frame, cells)
            notice(frame)
            del frame  # it would keep the variables of functions that have returned, while this waits
            pause = min(2 * pause, _LONGEST_SECONDS)
        self._gone.set()

    def _look(self, frame: FrameType | None, cells: Mapping[str, int]) -> None:
        place = place_in_cells(frame, cells)
        if place and place != self._last:
            write_place(self._page, place)
            self._last = place
        question = unanswered(self._page)
        if question is not None:
            dump = dump_of(sys._current_frames())  # noqa: SLF001  # as above
            os.write(self._fd, dump.encode(errors="backslashreplace"))
            note_answer(self._page, question)


def place_in_cells(frame: FrameType | None, cells: Mapping[str, int]) -> str:
    """Return where the innermost code of a cell is, as a person says it; empty where no cell's code runs."""
    while frame is not None:
        cell = cells.get(frame.f_code.co_filename)
        if cell is not None:
            return line_in_words(frame.f_lineno, cell)
        frame = frame.f_back
    return ""


def _tell_faults_on_stderr() -> None:
    faulthandler.enable(file=2)
