"""Where pickled values find their memory when they are unpickled.

The functions that rebuild storages and arrays are called by pickle with the number of a buffer. What the
number stands for, the loader in force knows: in a worker the segments that were handed over, in the kernel
its own memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from nbshm.memory.masks import LentMask


class Memory(NamedTuple):
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

    def cuda_storage(self, number: int) -> Any:
        """Return the storage on a GPU of that number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    loader: Loader
    lent_masks: list[LentMask]
    storages: dict[int, Any] = field(default_factory=dict)


_load: ContextVar[_Load] = ContextVar("nbshm.memory.load")


@contextmanager
def loading(loader: Loader, *, lent_masks: list[LentMask] | None = None) -> Iterator[None]:
    """Let values that are unpickled inside find their memory with this loader.

    The masks that are lent to masked arrays among them are added to a list, if there is one.
    """
    token = _load.set(_Load(loader=loader, lent_masks=[] if lent_masks is None else lent_masks))
    try:
        yield
    finally:
        _load.reset(token)


def memory_of(number: int, *, private: bool = False) -> Memory:
    """Return the memory behind a number in the pickle that is being loaded."""
    return _load.get().loader.memory(number, private=private)


def storages_made() -> dict[int, Any]:
    """Return the storages that the pickle being loaded has so far, by number: each number stands for one."""
    return _load.get().storages


def lent_masks() -> list[LentMask]:
    """Return the masks lent to masked arrays of the pickle that is being loaded, to add one to."""
    return _load.get().lent_masks


def cuda_storage_of(number: int) -> Any:
    """Return the storage on a GPU behind a number in the pickle that is being loaded."""
    return _load.get().loader.cuda_storage(number)
