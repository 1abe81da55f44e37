"""Storages on GPUs, which CUDA itself hands to other processes.

Their memory belongs to the process that has allocated it and ends with that; it can't be moved as memory on
the CPU can, and who has received a storage can't pass it on. torch counts who has one, in a file of shared
memory: each that opens a handle takes one off the count when it gives the storage up, and what the owner has
given up is freed when nothing is left of the count. A handle is made with a count of one.

So somebody must hold each storage. The notebook's are held in the kernel as long as workers run, so one
handle does for all of them, and for later runs. When they have ended, one is taken off for those that were
killed before they did so. What a worker gives back is copied in the kernel before the worker is let go. What
goes through a queue is held by who has sent it (`lending.py`).

All that touches CUDA, and the methods of torch that have no public name, is in this room.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import util
from pathlib import Path
from typing import Any

import torch

from nbshm.jobs import CudaHandle
from nbshm.refusals import Unshareable

_RECEIVED = "received from another process"  # in what torch says of one; the tests on a GPU hold it to that
_LAST = -20  # priority of an exit: queues have things to send until -5, and ranks then stay for others
_DIRECTORY = Path("/dev/shm")  # noqa: S108  # where torch puts the files of its counts


class Received(Unshareable):
    """A storage that this process has from another one."""

    def __init__(self) -> None:
        super().__init__(
            "it was received from another process, which CUDA lets nobody pass on", "Use {its}clone()."
        )


def is_on_cuda(storage: torch.UntypedStorage) -> bool:
    """Tell whether a storage lies on a GPU of CUDA's."""
    return storage.device.type == "cuda"


def handle_of(storage: torch.UntypedStorage) -> CudaHandle:
    """Return what other processes open a storage by: the same as long as its memory stays where it is.

    Who uses it must see to it that the storage is held, as the count may have come to nothing before.

    Raises
    ------
    Received
        Its memory is another process's.
    Unshareable
        CUDA does not hand it over.

    """
    known = _known_handle_of(storage)
    if known is not None:
        return known
    handle = new_handle_of(storage)
    storage.handed_over = _place(storage), handle  # type: ignore[attr-defined]  # the object lives as long as the storage in C++
    return handle


def is_handed_over(storage: torch.UntypedStorage) -> bool:
    """Tell whether this process has made a handle of a storage, and its memory is still where it was."""
    return _known_handle_of(storage) is not None


def _known_handle_of(storage: torch.UntypedStorage) -> CudaHandle | None:
    place, handle = getattr(storage, "handed_over", (None, None))
    return handle if place is not None and place == _place(storage) else None


def _place(storage: torch.UntypedStorage) -> tuple[int, int]:
    return storage.data_ptr(), storage.nbytes()


def new_handle_of(storage: torch.UntypedStorage) -> CudaHandle:
    """Return a handle with a count of its own, by which one process may open a storage once.

    Raises as `handle_of` does.
    """
    try:
        return CudaHandle(*_share(storage))
    except RuntimeError as error:
        if _RECEIVED in str(error):
            raise Received from error
        reason = f"CUDA does not hand it over ({_first_line(error)})"
        raise Unshareable(reason, "Use {its}cpu(), or make it in the cell.") from error


def lent(
    storage: torch.UntypedStorage, name: Callable[[torch.UntypedStorage], CudaHandle] = handle_of
) -> tuple[torch.UntypedStorage, CudaHandle]:
    """Return a storage and what others open it by; in the place of one that was received, a clone.

    `name` makes the handle.
    """
    try:
        return storage, name(storage)
    except Received:
        clone = storage.clone()  # type: ignore[no-untyped-call]
        finish([clone])
        return clone, name(clone)


def opened(handle: CudaHandle) -> torch.UntypedStorage:
    """Open a storage of another process, whose writes and ours are the same memory's.

    Raises
    ------
    RuntimeError
        CUDA can't: the other process has ended, or has another GPU under that number.

    """
    try:
        return _open(handle)
    except RuntimeError as error:
        raise RuntimeError(
            f"a tensor of another process on cuda:{handle.device} can't be opened here: "
            f"{_first_line(error)}. That process must be there still, and both must "
            "count the same GPUs: set CUDA_VISIBLE_DEVICES before CUDA is first used, and not again."
        ) from error


def copy_of(handle: CudaHandle) -> torch.UntypedStorage:
    """Copy a storage of another process into memory of this one's, and give it up."""
    theirs = opened(handle)
    copied: torch.UntypedStorage = theirs.clone()  # type: ignore[no-untyped-call]
    finish([copied])
    return copied


@contextlib.contextmanager
def handed_over() -> Iterator[list[CudaHandle]]:
    """Collect handles that are used inside; then nobody has them any more, who was killed neither."""
    handles: list[CudaHandle] = []
    try:
        yield handles
    finally:
        for handle in handles:
            take_off(handle)


def take_off(handle: CudaHandle) -> None:
    """Take one off a handle's count for a process that has ended, or may have, before it did so."""
    torch.UntypedStorage._release_ipc_counter_cuda(  # noqa: SLF001  # torch's reductions call it
        handle.counter_file, handle.counter
    )


def finish(storages: Iterable[torch.UntypedStorage]) -> None:
    """Wait until the GPUs of these storages have done what this process has asked of them."""
    for device in {storage.device for storage in storages}:
        finish_on(device)


def finish_on(device: torch.device) -> None:
    """Wait until a GPU has done what this process has asked of it."""
    torch.cuda.synchronize(device)


def finish_everything() -> None:
    """Wait until all GPUs that this process uses have done what it has asked of them; their errors raise."""
    for number in range(torch.cuda.device_count()):
        if torch._C._cuda_hasPrimaryContext(number):  # type: ignore[attr-defined]  # noqa: SLF001  # else this would start one
            torch.cuda.synchronize(number)


def remove_counts(directory: Path = _DIRECTORY) -> None:
    """Remove the files of this process's counts, which torch leaves behind where it is a child."""
    for name in _counts:
        (directory / os.path.basename(os.fsdecode(name))).unlink(missing_ok=True)  # noqa: PTH119  # bytes
    _counts.clear()


_counts: set[bytes] = set()  # of the process, as its memory is


def _first_line(error: RuntimeError) -> str:
    """Return what CUDA says before it goes into its ways of debugging."""
    return str(error).partition("\n")[0].rstrip(".")


def _share(storage: torch.UntypedStorage) -> Any:
    shared = storage._share_cuda_()  # type: ignore[no-untyped-call]  # torch's reductions call it
    if not _counts:
        util.Finalize(None, remove_counts, exitpriority=_LAST)
    _counts.add(CudaHandle(*shared).counter_file)
    return shared


def _open(handle: CudaHandle) -> torch.UntypedStorage:
    torch.cuda.init()  # type: ignore[no-untyped-call]
    storage: torch.UntypedStorage = torch.UntypedStorage._new_shared_cuda(*handle)  # noqa: SLF001  # likewise
    return storage
