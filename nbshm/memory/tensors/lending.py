"""Storages on GPUs that go through queues and pipes: held by who has sent them, until they are given back.

A storage is lent under a handle (`cuda.py`) and with a line: a pipe of which the lender has the end that is
read, and the message the other one (kept on its way see `nbshm/wire/kept.py`). Who takes
the message holds that end as long as the storage. So the lender sees the end of the pipe when the storage has
been given up, when who had it has ended in whatever way, or when nobody can take the message any more.

A storage that its own lender takes from the queue is the one that it put there: CUDA opens no handle in the
process that made it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from nbshm.jobs import CudaHandle
from nbshm.memory.tensors import cuda
from nbshm.wire.kept import KeptFd

Reduced: TypeAlias = tuple[Any, ...]
Keep: TypeAlias = Callable[[int], KeptFd | None]
Token: TypeAlias = tuple[int, int]
"""Which lending it is: the lender's pid, and a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lent:
    """A storage, and the end of its line that is read."""

    storage: torch.UntypedStorage
    line: int


class Lendings:
    """What this process has lent and borrowed."""

    def __init__(self) -> None:
        self._lent: dict[Token, _Lent] = {}
        self._borrowed: dict[int, Callable[[], object]] = {}  # by line, which each is given back by
        self._numbers = itertools.count()
        self._lock = threading.RLock()  # queues are fed by threads, and storages given up anywhere

    def lend(self, storage: torch.UntypedStorage, keep: Keep) -> Reduced:
        """Reduce a storage to what its borrower opens it by; `keep` has the line kept until that is taken.

        Where it can't be kept, nothing but torch's count holds the storage.
        """
        self.look()
        ours, theirs = os.pipe()
        with contextlib.ExitStack() as undo:
            undo.callback(os.close, ours)
            try:
                line = keep(theirs)
            finally:
                os.close(theirs)
            if line is None:
                return reduce_by_count(storage)
            mine, handle = cuda.lent(storage)
            token = os.getpid(), next(self._numbers)
            with self._lock:
                self._lent[token] = _Lent(storage=mine, line=ours)
            undo.pop_all()
        return rebuild_borrowed, (token, handle, line)

    def take(self, token: Token, handle: CudaHandle, line: int) -> torch.UntypedStorage:
        """Return what was lent, and give it back when nothing here uses it any more; the line is owned."""
        own = self._lent.get(token)
        if own is not None:
            os.close(line)
            return own.storage
        try:
            storage = cuda.opened(handle)
        except RuntimeError:
            os.close(line)
            raise
        give_back = weakref.finalize(storage, self._give_back, line, storage.device)
        give_back.atexit = False  # the system closes the line then
        with self._lock:
            self._borrowed[line] = give_back
        return storage

    def look(self) -> list[int]:
        """Let go of what has been given back; return the lines of what has not."""
        with self._lock:
            ended = _ended([lent.line for lent in self._lent.values()])
            for token, lent in list(self._lent.items()):
                if lent.line in ended:
                    del self._lent[token]
                    os.close(lent.line)
            return [lent.line for lent in self._lent.values()]

    def give_all_back(self) -> None:
        """Give back everything that is borrowed, which nothing here uses any more."""
        with self._lock:
            waiting = list(self._borrowed.values())
        for give_back in waiting:
            give_back()

    def _give_back(self, line: int, device: torch.device) -> None:
        with self._lock:
            del self._borrowed[line]
        try:
            cuda.finish_on(device)  # what was asked of the GPU may still read there
        finally:
            os.close(line)


def reduce_by_count(storage: torch.UntypedStorage) -> Reduced:
    """Reduce a storage to what one process opens it by, and torch's count holds it for."""
    _, handle = cuda.lent(storage, cuda.counted_handle_of)
    return rebuild, (handle,)


lendings = Lendings()  # of the process: what unpickles has nothing but module names


def rebuild_borrowed(token: Token, handle: CudaHandle, line: KeptFd) -> torch.UntypedStorage:
    """Open a storage that was lent with a line."""
    return lendings.take(token, handle, line.detach())


def rebuild(handle: CudaHandle) -> torch.UntypedStorage:
    """Open a storage that torch's count holds."""
    return cuda.opened(handle)


def _ended(lines: list[int]) -> set[int]:
    """Return the lines that nobody holds the other end of."""
    poll = select.poll()
    for line in lines:
        poll.register(line, 0)
    return {line for line, _ in poll.poll(0)}
