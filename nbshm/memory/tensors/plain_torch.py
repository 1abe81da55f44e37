"""Storages that the notebook's own code sends with torch.multiprocessing.

torch moves a storage to shared memory when it is pickled. For one that lies in a segment of ours that would
cut its ties to the workers and to the arrays over the same memory, silently; for one that numpy looks at,
it frees the memory under the view. So while nbshm is loaded, storages go through a reducer of ours, and
what has nothing to do with either through torch's; tensors too (see `torch_sharing.py`).

With the strategy file_system a storage travels by name, and torch's manager of the process that named it
removes the name when nobody is connected to it any more. For what goes through a queue such a connection is
kept, until the receiver has one of its own.
"""

from __future__ import annotations

import os
import socket
import weakref
from collections.abc import Callable
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeAlias

import torch
from torch.multiprocessing import reductions

from nbshm.memory.ownership.threads import are_others_at_work
from nbshm.memory.shared.segments import RawBuffer, Segment, Segments
from nbshm.memory.tensors.cuda import is_on_cuda
from nbshm.memory.tensors.lending import lendings, reduce_by_count
from nbshm.memory.tensors.storages import keep, rebuild_empty, storage_over
from nbshm.memory.tensors.torch_limits import NewStorages, reduce_by_torch
from nbshm.memory.tensors.torch_sharing import TorchSharing, is_movable
from nbshm.wire.kept import KeptFd

Reduced: TypeAlias = tuple[Any, ...]


class PlainTorch:
    """The reducer of storages in multiprocessing's own picklers, from `install` to `remove`.

    `keep(fd)` has a descriptor kept for whoever receives what is being pickled, None if it can't be.
    """

    def __init__(self, segments: Segments, *, keep: Callable[[int], KeptFd | None]) -> None:
        self._segments = segments
        self._keep = keep
        self._storages = NewStorages(segments)
        self._sharing = TorchSharing(self._find, self._storages)

    def install(self) -> None:
        """Take the place of torch's reducer; doing it twice is fine."""
        self._storages.install()
        self._sharing.install()
        ForkingPickler.register(torch.UntypedStorage, self.reduce)

    def remove(self) -> None:
        """Put torch's reducer back."""
        self._sharing.remove()
        self._storages.remove()
        ForkingPickler.register(torch.UntypedStorage, reductions.reduce_storage)

    def reduce(self, storage: torch.UntypedStorage) -> Reduced:
        """Reduce a storage to its place in a segment; else see that torch can move it without harm."""
        if is_on_cuda(storage):
            return self._lend(storage) if storage.nbytes() else (rebuild_empty, (str(storage.device),))
        if is_movable(storage) and self._find(storage.data_ptr(), storage.nbytes()) is None:
            is_seen = not storage.resizable() or are_others_at_work()
            before = self._storages.move(storage)
            if is_seen:
                keep(before, storage)
        if storage.device.type == "cpu" and storage.nbytes() > 0:
            address, nbytes = storage.data_ptr(), storage.nbytes()
            segment = self._find(address, nbytes)
            if segment is not None:
                return rebuild_in_segment, (_travelling.known(segment), address - segment.address, nbytes)
        reduced = reduce_by_torch(storage)
        return self._with_name_kept(reduced) if reduced[0] is reductions.rebuild_storage_filename else reduced

    def look(self) -> None:
        """Let go of what this process has lent and been given back."""
        lendings.look()

    def _lend(self, storage: torch.UntypedStorage) -> Reduced:
        if get_spawning_popen() is not None:  # a line would have to be closed here once the process has it
            return reduce_by_count(storage)
        return lendings.lend(storage, self._keep)

    def _find(self, address: int, nbytes: int) -> Segment | None:
        return self._segments.find(address, nbytes) or _travelling.find(address, nbytes)

    def _with_name_kept(self, reduced: Reduced) -> Reduced:
        """Add to a reduction by name what keeps the name until it is unpickled."""
        if get_spawning_popen() is not None:  # who starts a process lives until that has what it needs
            return reduced
        rebuild, (kind, manager, *rest) = reduced
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.fsdecode(manager))
            kept = self._keep(connection.fileno())
        return reduced if kept is None else (rebuild_by_name, (kept, rebuild, (kind, manager, *rest)))


def rebuild_in_segment(segment: Segment, offset: int, nbytes: int) -> torch.UntypedStorage:
    """Make a storage over its place in a segment."""
    return storage_over(_travelling.known(segment).buffer, offset, nbytes)


def rebuild_by_name(kept: KeptFd, rebuild: Callable[..., Any], arguments: Reduced) -> Any:
    """Make a storage by name, and give up what kept the name until now."""
    try:
        return rebuild(*arguments)
    finally:
        os.close(kept.detach())


class _Travelling:
    """The segments that this process has sent or received in plain pickles, each of them mapped once.

    A buffer that comes back is where it was, and one that came can be sent on.
    """

    def __init__(self) -> None:
        self._by_file: weakref.WeakValueDictionary[tuple[int, int], RawBuffer] = weakref.WeakValueDictionary()
        self._by_address = Segments()

    def known(self, segment: Segment) -> Segment:
        """Return the segment as it is mapped already, if it is, and know it from now on.

        What is sent is shared, with forked children too.
        """
        segment.stay_shared()
        status = os.fstat(segment.fd)
        file = status.st_dev, status.st_ino
        buffer = self._by_file.get(file)
        if buffer is not None:
            return Segment.used_by(buffer)
        self._by_file[file] = segment.buffer
        return self._by_address.add(segment)

    def find(self, address: int, nbytes: int) -> Segment | None:
        """Return the segment that holds all of that memory, if there is one."""
        return self._by_address.find(address, nbytes)


_travelling = _Travelling()  # of the process, as its memory is: what unpickles has nothing but module names
