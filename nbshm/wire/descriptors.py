"""Let objects that hold file descriptors be pickled into a job, as if a process were being created.

Queues, locks, connections and their like can be pickled only while multiprocessing creates a process: they
ask the *spawning popen* of the moment to hand a descriptor to the child (`multiprocessing.reduction.DupFd`).
While a job is pickled that popen is `Collected`, which keeps the descriptors for the job's frame; the worker
finds them again by number.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
from collections.abc import Iterator, Sequence
from multiprocessing import context


class JobFd:
    """A descriptor in a pickled job: the number of its place among those that travel with the job."""

    def __init__(self, number: int) -> None:
        self.number = number

    def detach(self) -> int:
        """Return a descriptor that the caller owns; an object that is unpickled twice gets two of them."""
        return os.dup(_received.get()[self.number])


class Collected:
    """The descriptors that a job's objects asked for; looks to multiprocessing like the popen of a process.

    They are duplicates: an object that closes its own before the job is sent does no harm. Close it when
    sent.
    """

    method = "forkserver"
    DupFd = JobFd

    def __init__(self) -> None:
        self.fds: list[int] = []

    def duplicate_for_child(self, fd: int) -> int:
        """Keep a duplicate for the job and return its number; multiprocessing's reducers call this."""
        self.fds.append(os.dup(fd))
        return len(self.fds) - 1

    def close(self) -> None:
        """Close the duplicates."""
        while self.fds:
            os.close(self.fds.pop())


@contextlib.contextmanager
def collecting_descriptors() -> Iterator[Collected]:
    """Collect what is pickled inside the `with` block in this thread; on an error nothing stays open."""
    collected = Collected()
    before = context.get_spawning_popen()
    context.set_spawning_popen(collected)  # type: ignore[arg-type]  # what the pickling asks of a popen
    try:
        yield collected
    except BaseException:
        collected.close()
        raise
    finally:
        context.set_spawning_popen(before)


@contextlib.contextmanager
def received_descriptors(fds: Sequence[int]) -> Iterator[None]:
    """Resolve the descriptors of a job that is unpickled inside the `with` block, then close `fds`."""
    token = _received.set(fds)
    try:
        yield
    finally:
        _received.reset(token)
        for fd in fds:
            os.close(fd)


_received: contextvars.ContextVar[Sequence[int]] = contextvars.ContextVar("nbshm_received_descriptors")
