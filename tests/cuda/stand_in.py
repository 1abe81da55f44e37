"""Stands for CUDA where there is no GPU: a storage is on it if it lies in a file of its own.

What CUDA and torch do with handles is played by rules that are theirs: a handle can't be opened in the
process that made it, nor when that process has ended; a storage that was opened can't be shared; each that
gives a storage up takes one off the handle's count. A process that imports this module has such a GPU.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import weakref
from pathlib import Path

import torch

from nbshm.jobs import CudaHandle
from nbshm.memory import cuda, plain_tensors, plain_torch, storages, tensors
from nbshm.worker import borrowers

PLACE = Path(os.environ.setdefault("STAND_IN_FOR_CUDA", tempfile.mkdtemp()))
_numbers = itertools.count()
_opened: weakref.WeakSet[torch.UntypedStorage] = weakref.WeakSet()


def ones(count: int) -> torch.Tensor:
    """Return a tensor of ones on the GPU."""
    return torch.ones(0).set_(_new(4 * count)).fill_(1)


def counts_of(tensor: torch.Tensor) -> Path:
    """Return the file that grows by a byte whenever one is taken off the count of a tensor's handle."""
    return _counts(cuda.handle_of(tensor.untyped_storage()))


def is_on_cuda(storage: torch.UntypedStorage) -> bool:
    return storage.filename is not None


def _new(nbytes: int) -> torch.UntypedStorage:
    return torch.UntypedStorage.from_file(str(PLACE / f"{os.getpid()}-{next(_numbers)}"), True, nbytes)  # noqa: FBT003


def _share(storage: torch.UntypedStorage) -> tuple:
    if storage in _opened:
        raise RuntimeError(
            "Attempted to send CUDA tensor received from another process; this is not supported."
        )
    if storage.filename is None:  # a clone
        storage = _new(storage.nbytes()).copy_(storage)
    counter = next(_numbers)
    handle = CudaHandle(
        device=os.getpid(),
        handle=os.fsencode(storage.filename),
        nbytes=storage.nbytes(),
        offset=0,
        counter_file=os.fsencode(f"{storage.filename}-counts"),
        counter=counter,
        event=b"",
        must_wait=False,
    )
    _counts(handle).touch()
    return tuple(handle)


def _open(handle: CudaHandle) -> torch.UntypedStorage:
    if handle.device == os.getpid():
        raise RuntimeError("CUDA error: invalid device context\nand how to debug it")
    if not Path(f"/proc/{handle.device}").exists():
        raise RuntimeError("CUDA error: invalid argument\nand how to debug it")
    storage = torch.UntypedStorage.from_file(os.fsdecode(handle.handle), True, handle.nbytes)  # noqa: FBT003
    _opened.add(storage)
    weakref.finalize(storage, take_off, handle).atexit = False
    return storage


def take_off(handle: CudaHandle) -> None:
    with _counts(handle).open("ab") as file:
        file.write(b"-")


def _counts(handle: CudaHandle) -> Path:
    return Path(f"{os.fsdecode(handle.counter_file)}-{handle.counter}")


cuda._share, cuda._open, cuda.take_off, cuda.finish_on = _share, _open, take_off, lambda _: None
for room in (cuda, plain_torch, storages, tensors):
    room.is_on_cuda = is_on_cuda
_is_plain = plain_tensors._is_plain
plain_tensors._is_plain = lambda tensor: not is_on_cuda(tensor.untyped_storage()) and _is_plain(tensor)
borrowers.PATIENCE = 0.1
