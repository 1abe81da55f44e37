"""The descriptors that go with a child of plain multiprocessing on behalf of the notebook's values.

While a child is being made, what is pickled hands its descriptors to the object that starts the process. The
notebook is pickled several times until it is settled, so those of earlier attempts are taken back. And with
the start method spawn a descriptor keeps its number in the child, so what the notebook has and the process is
given as well (a queue) would be closed twice there: the notebook's part uses a copy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import context
from typing import Any

_MOST = 128  # of the 250 or so that a child can be given at its start


class Descriptors:
    """What the notebook's values have handed to a popen so far."""

    def __init__(self, popen: Any) -> None:
        self._fds: list[int] = getattr(popen, "_fds", [])
        self._before = len(self._fds)

    def take_back(self) -> None:
        """Forget those that were handed over since the beginning."""
        del self._fds[self._before :]

    def check(self) -> None:
        """Raise Unsendable if there are more than a child should be given for values it may never use."""
        if len(self._fds) - self._before > _MOST:
            from nbshm.refusals import Unsendable  # noqa: PLC0415  # most children start no process

            reason = (
                f"the storages in it need more than {_MOST} file descriptors, which each child would be given"
            )
            raise Unsendable(reason, "Pass it to the process as an argument.")


@contextmanager
def handing_over() -> Iterator[Descriptors]:
    """Give the descriptors of the notebook's values to the child that is being made."""
    popen: Any = context.get_spawning_popen()
    if popen is None or getattr(popen, "method", None) != "spawn":
        yield Descriptors(popen)
        return
    popen._fds = _Distinct(popen._fds)  # noqa: SLF001  # there is no other door
    popen.DupFd = CopiedDescriptor
    try:
        yield Descriptors(popen)
    finally:
        del popen.DupFd


class CopiedDescriptor:
    """A descriptor that the child has under the same number; who asks for it there is given a copy."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def detach(self) -> int:
        """Return a descriptor of the caller's own."""
        return os.dup(self._fd)


class _Distinct(list[int]):
    """A list that has each number once: a child can be given no descriptor twice."""

    def append(self, fd: int) -> None:
        if fd not in self:
            super().append(fd)
