"""Where pickled values find their memory when they are unpickled.

The functions that rebuild storages and arrays are called by pickle with the number of a buffer. What the
number stands for, the loader in force knows: in a worker the segments that were handed over, in the kernel
its own memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """`nbytes` bytes from `offset` in an object with a writeable buffer, which owns them.

    `original` is the object that the number was made for, where this process has it still.
    """

    buffer: Any
    offset: int
    nbytes: int
    original: Any = None


class Loader(Protocol):
    """Knows the memory behind the numbers of one pickle."""

    def memory(self, number: int, *, private: bool) -> Memory:
        """Return the memory of a buffer; `private` asks for one whose writes nobody else sees."""


_loader: ContextVar[Loader] = ContextVar("nbshm.memory.loader")


@contextmanager
def loading(loader: Loader) -> Iterator[None]:
    """Let values that are unpickled inside find their memory with this loader."""
    token = _loader.set(loader)
    try:
        yield
    finally:
        _loader.reset(token)


def memory_of(number: int, *, private: bool = False) -> Memory:
    """Return the memory behind a number in the pickle that is being loaded."""
    return _loader.get().memory(number, private=private)
