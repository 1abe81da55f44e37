"""Storages on GPUs, which CUDA itself hands to other processes.

Their memory belongs to the process that has allocated it and ends with that; it can't be moved as memory on
the CPU can, and who has received a storage can't pass it on.

So somebody must hold each storage. The notebook's are held in the kernel as long as workers run, so one
handle does for all of them, and for later runs. What a worker gives back is copied in the kernel before the
worker is let go. What goes through a queue is held by who has sent it (`lending.py`).

*Who is counted.* torch counts who has a storage, in a file of shared memory. A handle is made with a count of
one, each that opens it takes one off when it gives the storage up, and what the owner has dropped is freed
when the count is nothing. It must not be less: it has no sign. So it is of use for a handle that one process
opens once. Where somebody holds the storage nobody is counted: the one is taken off at once, and handles name
a file that can't be there, which torch takes for that of a process that has ended.

All that touches CUDA, and the methods of torch that have no public name, is in this room.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable
from multiprocessing import util
from pathlib import Path
from typing import TypeAlias

import torch

from nbshm.jobs import CudaHandle
from nbshm.machine.shared_memory import DIRECTORY
from nbshm.refusals import Unshareable

HandleMaker: TypeAlias = Callable[[torch.UntypedStorage], CudaHandle]

_RECEIVED = "received from another process"  # in what torch says of one; the tests on a GPU hold it to that
_UNCOUNTED = b"/nobody/is-counted"  # no file of shared memory has a name with two slashes
_LAST = -20  # priority of an exit: queues have things to send until -5, and ranks then stay for others


class Received(Unshareable):
    """A storage that this process has from another one."""

    def __init__(self) -> None:
        super().__init__(
            "it was received from another process, which CUDA lets nobody pass on", "Use {its}clone()."
        )


def is_on_cuda(storage: torch.UntypedStorage) -> bool:
    """Tell whether a storage lies on a GPU of CUDA's."""
    return storage.device.type == "cuda"


def is_pinned(storage: torch.UntypedStorage) -> bool:
    """Tell whether CPU memory is pinned for a GPU; asked only where one is in use, as asking starts it."""
    return bool(torch.cuda.is_initialized() and storage.is_pinned())  # type: ignore[no-untyped-call]


def handle_of(storage: torch.UntypedStorage) -> CudaHandle:
    """Return what other processes open a storage by: the same as long as its memory stays where it is.

    Who uses it must hold the storage as long as others have it, and first `finish` what writes to it.

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
    handle = _uncounted(counted_handle_of(storage))
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


def _uncounted(handle: CudaHandle) -> CudaHandle:
    """Take the one off a handle's count, and return it as one that counts nobody and waits for nothing."""
    torch.UntypedStorage._release_ipc_counter_cuda(  # noqa: SLF001  # torch's reductions call it
        handle.counter_file, handle.counter
    )
    return handle._replace(counter_file=_UNCOUNTED, counter=0, must_wait=False)


def counted_handle_of(storage: torch.UntypedStorage) -> CudaHandle:
    """Return a handle by which one process may open a storage once; until it gives that up, torch keeps it.

    Raises as `handle_of` does.
    """
    try:
        return _share(storage)
    except RuntimeError as error:
        if _RECEIVED in str(error):
            raise Received from error
        reason = f"CUDA does not hand it over ({_first_line(error)})"
        raise Unshareable(reason, "Use {its}cpu(), or make it in the cell.") from error


def lent(
    storage: torch.UntypedStorage, make_handle: HandleMaker = handle_of
) -> tuple[torch.UntypedStorage, CudaHandle]:
    """Return a storage, finished, and what others open it by; in the place of a received one, a clone."""
    try:
        handle = make_handle(storage)
    except Received:
        finish([storage])  # what writes to it may be on another stream than the one that clones it
        storage = storage.clone()  # type: ignore[no-untyped-call]
        handle = make_handle(storage)
    finish([storage])  # a handle that was made before knows nothing of what was written since
    return storage, handle._replace(must_wait=False)


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
            f"{_first_line(error)}. {_remedy(error)}"
        ) from error


def _remedy(error: RuntimeError) -> str:
    if "pidfd" in str(error):  # by which torch reaches memory that is mapped piece by piece
        return (
            "Segments that expand can't be opened on this system, which lets no process take another's "
            "descriptors: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False before CUDA is first used."
        )
    return (
        "That process must be there still, and both must count the same GPUs: set CUDA_VISIBLE_DEVICES "
        "before CUDA is first used, and not again."
    )


def copy_of(handle: CudaHandle) -> torch.UntypedStorage:
    """Copy a storage of another process into memory of this one's, and give it up."""
    theirs = opened(handle)
    copied: torch.UntypedStorage = theirs.clone()  # type: ignore[no-untyped-call]
    finish([copied])
    return copied


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


def has_handed_over() -> bool:
    """Tell whether other processes were given memory of this one."""
    return bool(_counts)


def remove_counts(directory: str | Path = DIRECTORY) -> None:
    """Remove the files of this process's counts. torch does so, too, and must not find them gone."""
    for name in _counts:
        Path(directory, os.path.basename(os.fsdecode(name))).unlink(missing_ok=True)  # noqa: PTH119  # bytes
    _counts.clear()


_counts: set[bytes] = set()  # of the process, as its memory is


def _ends_abruptly() -> bool:
    """Tell whether multiprocessing has forked this process, which then ends before C++ can clear away."""
    return multiprocessing.parent_process() is not None and "--multiprocessing-fork" not in sys.orig_argv


def _first_line(error: RuntimeError) -> str:
    """Return what CUDA says before it goes into its ways of debugging."""
    return str(error).partition("\n")[0].rstrip(".")


def _share(storage: torch.UntypedStorage) -> CudaHandle:
    handle = CudaHandle(*storage._share_cuda_())  # type: ignore[no-untyped-call]  # torch's reductions call it
    if not _counts and _ends_abruptly():
        util.Finalize(None, remove_counts, exitpriority=_LAST)
    _counts.add(handle.counter_file)
    return handle


def _open(handle: CudaHandle) -> torch.UntypedStorage:
    torch.cuda.init()  # type: ignore[no-untyped-call]
    storage = torch.UntypedStorage._new_shared_cuda(*handle)  # noqa: SLF001  # likewise
    # In torch 2.6, say, that object is another one than tensors tell: weak references to it end too early.
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage).untyped_storage()
