"""Storages shared by torch itself, its limits met first.

torch makes a file in /dev/shm for each storage, under either strategy, and under file_descriptor keeps it
open. When there is no room it has begun already: the file stays, or the process has no descriptors left.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing.context import get_spawning_popen
from types import FrameType
from typing import Any, TypeAlias

import torch
from torch.multiprocessing import reductions

from nbshm.errors import NoRoom
from nbshm.machine.descriptor_limit import are_fewer_left_than
from nbshm.machine.shared_memory import DIRECTORY
from nbshm.memory.shared.limits import Room, largest_file, memory_left, shared_memory_left
from nbshm.memory.shared.segments import Segments
from nbshm.memory.tensors import strategies  # the module: its own import of torch may be what has led here
from nbshm.memory.tensors.storages import storage_over, swap
from nbshm.own_code import is_the_persons
from nbshm.replacing import Replacement

Reduced: TypeAlias = tuple[Any, ...]

_SPARE = 100  # descriptors that torch leaves to everything else; the receivers have not raised their limits
_AT_A_START = 200  # of those that go with a process, which may have other things than storages
_FULL = re.compile(r"unable to allocate shared memory\(shm\) for file </(\w+)>")
_GONE = ("Broken pipe", "Connection reset by peer", "Connection refused")
_switching = threading.Lock()  # the strategy is the process's, and queues are fed by threads


class NewStorages(Replacement):
    """Makes torch's new storages in shared memory, those of a loader's batches too, while it is installed.

    Where /dev/shm has no room for one, it lies in a segment.
    """

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        super().__init__(torch.UntypedStorage, "_new_shared", self.make)

    def make(self, nbytes: int, *, device: Any = "cpu") -> torch.UntypedStorage:
        """Do what `UntypedStorage._new_shared` does.

        Raises
        ------
        NoRoom
            There is too little for it.

        """
        lacks_room = torch.device(device).type == "cpu" and _lacks_room(nbytes)
        return self._make(nbytes, device, lacks_room=lacks_room)

    def move(self, storage: torch.UntypedStorage) -> torch.UntypedStorage:
        """Move a storage to a new one, and return one over the old memory.

        Raises
        ------
        NoRoom
            There is too little for it; nothing has been changed.

        """
        nbytes = storage.nbytes()
        lacks_room = _lacks_room(nbytes)
        with _sharing_by_name(storage) if not lacks_room and _must_have_name() else nullcontext():
            shared = self._make(nbytes, "cpu", lacks_room=lacks_room)
        shared.copy_(storage)
        swap(storage, shared)
        return shared

    def _make(self, nbytes: int, device: Any, *, lacks_room: bool) -> torch.UntypedStorage:
        if lacks_room:
            return self._in_segment(nbytes)
        try:
            with _told_of_manager():
                made: torch.UntypedStorage = self.original(nbytes, device=device)
        except RuntimeError as error:
            found = _FULL.search(str(error))
            if found is None:
                raise
            _clear_away(found[1])
            if strategies.strategy() != "file_descriptor":
                _lacks_room(nbytes)  # others have taken the room meanwhile: says so, and what to do
                raise
            return self._in_segment(nbytes)
        return made

    def _in_segment(self, nbytes: int) -> torch.UntypedStorage:
        segment = self._segments.create(nbytes)
        segment.stay_shared()
        return storage_over(segment.buffer, 0, nbytes)


def reduce_by_torch(storage: torch.UntypedStorage) -> Reduced:
    """Reduce a storage as torch does, by the strategy in force or, if it got a name above, by that."""
    by_name = strategies.strategy() == "file_descriptor" and hasattr(storage, "goes_by_name")
    with _sharing_by_name(storage) if by_name else nullcontext(), _told_of_manager():
        return reductions.reduce_storage(storage)  # type: ignore[no-any-return, no-untyped-call]


def _lacks_room(nbytes: int) -> bool:
    """Tell whether a storage is too big for /dev/shm, but may be moved into a segment instead.

    Raises
    ------
    NoRoom
        It is too big for both, or the strategy in force wants a name for it.

    """
    _check(largest_file(), nbytes)
    room = shared_memory_left()
    if room is None or nbytes <= room.nbytes:
        return False
    if strategies.strategy() != "file_descriptor":
        _check(room, nbytes, " Or use %shm_strategy file_descriptor, for which memory anywhere will do.")
    _check(memory_left(), nbytes)
    return True


def _check(room: Room | None, nbytes: int, other_remedy: str = "") -> None:
    if room is not None and nbytes > room.nbytes:
        what, remedy = "a tensor that torch shares", room.remedy + other_remedy
        raise NoRoom(what=what, needed=nbytes, available=room.nbytes, where=room.where, remedy=remedy)


def _clear_away(name: str) -> None:
    """Remove the file that torch had begun when others took the room for it."""
    with suppress(OSError):
        os.unlink(os.path.join(DIRECTORY, name))  # noqa: PTH108, PTH118  # a string of the system's


@contextmanager
def _sharing_by_name(storage: torch.UntypedStorage) -> Iterator[None]:
    """Have torch share a storage by name, now and later: by descriptor it would move it once more."""
    storage.goes_by_name = True  # type: ignore[attr-defined]  # the object lives as long as the storage in C++
    with _switching:
        before = strategies.strategy()
        strategies.use_strategy("file_system")
        try:
            yield
        finally:
            strategies.use_strategy(before)


def _must_have_name() -> bool:
    reason = "" if strategies.strategy() == "file_system" else _want_of_descriptors()
    if reason:
        warnings.warn(
            f"{reason}, so torch shares by name what is left to send, as under %shm_strategy file_system.",
            stacklevel=_level_of_the_person(),
        )
    return bool(reason)


def _level_of_the_person() -> int:
    """Return how many calls up from here the person's code is; one more than there are if it is not there."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # the documented way
    level = 1
    while frame is not None and not is_the_persons(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level


def _want_of_descriptors() -> str:
    """Say why what is being sent can have no descriptor of its own; nothing if it can."""
    popen: Any = get_spawning_popen()
    if getattr(popen, "method", "") == "forkserver" and len(popen._fds) >= _AT_A_START:  # noqa: SLF001  # where they are collected
        return "the forkserver can hand over no more than about 250 file descriptors"
    return "few file descriptors are left" if are_fewer_left_than(_SPARE) else ""


@contextmanager
def _told_of_manager() -> Iterator[None]:
    """Say what to do where torch has lost its manager: its own word is `Broken pipe`."""
    try:
        yield
    except RuntimeError as error:
        if str(error).startswith(_GONE):
            raise RuntimeError(
                "torch's torch_shm_manager, which the strategy file_system needs, has ended, and only a new "
                "process starts another. Use %shm_strategy file_descriptor, or restart the kernel."
            ) from error
        raise
