"""A worker stays for those that have CUDA tensors of its own from a queue, as their memory ends with it."""

from __future__ import annotations

import pickle
import select
import sys
import time
from multiprocessing import util

from nbshm.events import Note, Waiting
from nbshm.wire.messages import BORROWERS, Alone
from nbshm.worker.life import Seat

PATIENCE = 5.0
"""Seconds to stay when no rank can take or give back anything any more: the notebook still may."""

_AFTER_QUEUES = -10  # priority of an exit: those of queues, which have things to send until then, have -5


def stay_for_borrowers(seat: Seat) -> None:
    """Have this process end only when what it has put on queues is not used any more, within reason."""
    util.Finalize(None, _stay, args=(seat,), exitpriority=_AFTER_QUEUES)


def _stay(seat: Seat) -> None:
    if "nbshm.memory.tensors.lending" not in sys.modules:  # nothing was lent
        return
    from nbshm.memory.tensors.lending import lendings  # noqa: PLC0415  # imports torch

    lendings.give_all_back()
    if lendings.look():
        seat.mention(Waiting(rank=seat.rank, at=BORROWERS))
        _wait(seat)
    left = lendings.look()
    if left:
        seat.mention(Note(rank=seat.rank, text=_lost(len(left))))


def _wait(seat: Seat) -> None:
    """Wait until everything is given back, or the others have ended and some time has passed."""
    from nbshm.memory.tensors.lending import lendings  # noqa: PLC0415  # imports torch

    until: float | None = None
    while (lines := lendings.look()) and (until is None or time.monotonic() < until):
        poll = select.poll()
        for line in lines:
            poll.register(line, 0)
        if until is None:
            poll.register(seat.channel.fileno(), select.POLLIN)
        ready = poll.poll(None if until is None else 1000 * (until - time.monotonic()))
        if until is None and seat.channel.fileno() in dict(ready) and _is_alone(seat):
            until = time.monotonic() + PATIENCE


def _is_alone(seat: Seat) -> bool:
    """Tell whether the kernel says so, or has gone."""
    frame = seat.channel.next_frame()
    return seat.channel.ended if frame is None else isinstance(pickle.loads(frame.payload), Alone)


def _lost(count: int) -> str:
    what = "a CUDA tensor" if count == 1 else f"{count} CUDA tensors"
    was, memory = ("was", "its") if count == 1 else ("were", "their")
    return (
        f"{what} that it has put on a queue {was} not taken, or still in use elsewhere, when all ranks had "
        f"finished: {memory} memory has ended with the rank. Take such a tensor in the run, give it back as "
        "the value of the cell, or send it with .cpu()."
    )
