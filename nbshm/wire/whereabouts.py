"""The file in memory on which a worker notes where it is, as its two sides write and read it.

    page 0   the place in the notebook that was seen last
    page 1   questions: the number of the last one that was asked, of the last that was answered, the thread;
             whether the worker has found that it can't be heard any more
    then     dumps of all threads' stacks, one after the other, as `faulthandler` writes them

The kernel asks by writing a number; a thread of the worker looks for it. Where that thread gets no turn, a
signal makes `faulthandler` write, which needs none.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
from dataclasses import dataclass

from nbshm.failures.stacks import Dump
from nbshm.machine.memfds import new_memfd

DUMP_SIGNAL: int = signal.SIGRTMAX - 7 if hasattr(signal, "SIGRTMAX") else signal.SIGUSR2
"""Asks for a dump. A real-time signal, of which no program expects anything; those at the ends have users."""

DUMPS = 2 * mmap.PAGESIZE
"""Where dumps begin; the file grows with each."""

_PLACE = mmap.PAGESIZE
_NUMBERS = struct.Struct("=QQQ")  # asked, answered, the thread whose stack is the worker's
_UNHEARD = _PLACE + _NUMBERS.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that was asked: its number, and where in the file its answer begins."""

    number: int
    start: int


def new_page() -> int:
    """Make an empty file; return its descriptor."""
    fd = new_memfd("nbshm-place")
    os.ftruncate(fd, DUMPS)
    return fd


def write_place(page: mmap.mmap, place: str) -> None:
    """Write a place down over the last one."""
    data = place.encode()[: _PLACE - 1] + b"\0"
    page[: len(data)] = data


def read_place(fd: int) -> str | None:
    """Return what was written last; None where nothing was."""
    return os.pread(fd, _PLACE, 0).partition(b"\0")[0].decode(errors="replace") or None


def ask(fd: int) -> Question:
    """Ask the worker for the stacks of its threads."""
    asked, _, _ = _read_numbers(fd)
    os.pwrite(fd, struct.pack("=Q", asked + 1), _PLACE)
    return Question(number=asked + 1, start=os.fstat(fd).st_size)


def listens(fd: int) -> bool:
    """Tell whether the worker would take the signal for what it is: one that is not ready would die of it."""
    return _read_numbers(fd)[2] != 0


def answer(fd: int, question: Question) -> Dump | None:
    """Return what the worker has answered; None as long as it has not."""
    if _read_numbers(fd)[1] < question.number:
        return None
    return read_dump(fd, question.start, on_its_own=True)


def read_dump(fd: int, start: int = DUMPS, *, on_its_own: bool = False) -> Dump | None:
    """Return what was dumped from `start` on; None where nothing was."""
    text = os.pread(fd, os.fstat(fd).st_size - start, start).decode(errors="replace")
    return Dump(text=text, thread=_read_numbers(fd)[2], on_its_own=on_its_own) if text else None


def write_thread(page: mmap.mmap, thread: int) -> None:
    """Say which thread's stack is the worker's, and that its signal can be sent from now on."""
    page[_PLACE + 16 : _PLACE + 24] = struct.pack("=Q", thread)


def write_unheard(page: mmap.mmap) -> None:
    """Say that the worker can't be heard any more: its channel is closed."""
    page[_UNHEARD] = 1


def is_unheard(fd: int) -> bool:
    """Tell whether the worker has said so."""
    return os.pread(fd, 1, _UNHEARD) == b"\x01"


def unanswered(page: mmap.mmap) -> int | None:
    """Return the number of a question that waits for its answer."""
    asked, answered, _ = _NUMBERS.unpack_from(page, _PLACE)
    return asked if asked > answered else None


def note_answer(page: mmap.mmap, number: int) -> None:
    """Say that the question of that number has been answered, and all before it."""
    page[_PLACE + 8 : _PLACE + 16] = struct.pack("=Q", number)


def _read_numbers(fd: int) -> tuple[int, int, int]:
    asked, answered, thread = _NUMBERS.unpack(os.pread(fd, _NUMBERS.size, _PLACE))
    return asked, answered, thread
