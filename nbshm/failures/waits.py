"""What a thread waits for, told from its stack: which function of which library it is in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from nbshm.failures.frames import Frame
from nbshm.own_code import OWN_DIRECTORY

Waker: TypeAlias = Literal["ranks", "processes", "anyone"]
"""Who can end a wait: other ranks of the run, any process that was given the object, anything at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What is waited for, in words, and who can end the wait."""

    what: str
    waker: Waker


BARRIER = Wait(what="the barrier", waker="ranks")
PROCESS = Wait(what="another process to end", waker="anyone")
TAKER = Wait(what="someone to take what was put on a queue", waker="processes")
_LOCK = Wait(what="the run's lock", waker="ranks")
_LOOP = Wait(what="its turn in a shared loop (claim)", waker="ranks")
_COLLECTIVE = Wait(what="the other ranks in a collective operation", waker="ranks")
_FULL_QUEUE = Wait(what="room in a queue", waker="processes")
_QUEUE = Wait(what="something in a queue", waker="processes")
_SYNCHRONIZATION = Wait(what="a lock, an event or a barrier of multiprocessing", waker="processes")
_CONNECTION = Wait(what="a connection to another process", waker="processes")
_THREAD = Wait(what="another thread", waker="anyone")
_POOL = Wait(what="the results of a pool", waker="anyone")

_OWN = "nbshm/"

# By the end of the file's path and the function; None: any function.
_KNOWN: dict[tuple[str, str | None], Wait] = {
    ("nbshm/worker/ranks.py", "barrier"): BARRIER,
    ("nbshm/wire/run_lock.py", "acquire"): _LOCK,
    ("nbshm/wire/board.py", "loop"): _LOOP,
    ("nbshm/worker/acquiring.py", "acquire"): _SYNCHRONIZATION,
    ("multiprocessing/queues.py", "get"): _QUEUE,
    ("multiprocessing/queues.py", "put"): _FULL_QUEUE,
    ("multiprocessing/queues.py", "_finalize_join"): TAKER,
    ("multiprocessing/synchronize.py", None): _SYNCHRONIZATION,
    ("multiprocessing/connection.py", "recv"): _CONNECTION,
    ("multiprocessing/connection.py", "recv_bytes"): _CONNECTION,
    ("multiprocessing/connection.py", "poll"): _CONNECTION,
    ("multiprocessing/connection.py", "wait"): _CONNECTION,
    ("multiprocessing/connection.py", "accept"): _CONNECTION,
    ("multiprocessing/process.py", "join"): PROCESS,
    ("multiprocessing/pool.py", None): _POOL,
    ("multiprocessing/spawn.py", "join"): PROCESS,
    ("concurrent/futures/_base.py", None): _POOL,
    ("subprocess.py", "wait"): PROCESS,
    ("subprocess.py", "communicate"): PROCESS,
    ("torch/distributed/distributed_c10d.py", None): _COLLECTIVE,
    ("torch/distributed/rendezvous.py", None): _COLLECTIVE,
    ("queue.py", "get"): _THREAD,
    ("queue.py", "put"): _THREAD,
    ("threading.py", "wait"): _THREAD,
    ("threading.py", "join"): _THREAD,
    ("threading.py", "_wait_for_tstate_lock"): _THREAD,
}


def what_it_waits_for(frames: Sequence[Frame]) -> Wait | None:
    """Return what a thread with these frames, the outermost first, waits for; None if nothing known.

    Looked for from the innermost frame outwards, as far as the person's code: what called that waits for
    nothing itself.
    """
    found = None
    for frame in reversed(frames):
        if frame.cell is not None:
            break
        known = _known(frame)
        # The outermost says most: a queue waits through a connection. But what is built of threading's
        # classes (multiprocessing's barrier) is not a thread's.
        if known is not None and (found is None or known is not _THREAD):
            found = known
    return found


def _known(frame: Frame) -> Wait | None:
    for (path, function), wait in _KNOWN.items():
        if function in {None, frame.function} and _is(frame.filename, path):
            return wait
    return None


def _is(filename: str, path: str) -> bool:
    if path.startswith(_OWN):  # the whole path, as others may have files of such names
        return filename == os.path.join(OWN_DIRECTORY, *path.removeprefix(_OWN).split("/"))  # noqa: PTH118  # compared with co_filename
    return filename.endswith(os.sep + path)
