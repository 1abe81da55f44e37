"""Stands for CUDA where there is no GPU: a storage is on it if it lies in a file of its own.

What torch's C++ and CUDA do with handles is played by rules that are theirs (torch/csrc/StorageSharing.cpp,
CudaIPCTypes.cpp, c10/cuda/CUDACachingAllocator.cpp). A handle can't be opened in the process that made it,
nor when that process has ended, nor before the writer has finished, if the handle doesn't wait for that. A
storage that was opened can't be shared. Each that gives a storage up takes one off the handle's count, where
it finds one. What its owner drops is freed once all its counts are nothing, and is in limbo else: they have
no sign. Who looks at freed memory sees that. A process that imports this module has such a GPU.
"""

from __future__ import annotations

import itertools
import os
import struct
import weakref
from pathlib import Path

import torch

from nbshm.jobs import CudaHandle
from nbshm.memory.tensors import cuda, plain_tensors, plain_torch, reducer, storages
from nbshm.worker import borrowers

PLACE = Path(__file__).parent
_numbers = itertools.count()
_opened: weakref.WeakSet[torch.UntypedStorage] = weakref.WeakSet()
_allocated: dict[Path, list[int]] = {}  # the counts by which others may have what lies in these files
_limbo: list[Path] = []


def ones(count: int) -> torch.Tensor:
    """Return a tensor of ones on the GPU."""
    return torch.ones(0).set_(_allocate(4 * count)).fill_(1)


def allocated() -> int:
    """Return the bytes of this process that are neither dropped nor in limbo, as `torch.cuda` does."""
    _collect()
    return sum(path.stat().st_size for path in list(_allocated))


def is_on_cuda(storage: torch.UntypedStorage) -> bool:
    return storage.filename is not None


def _allocate(nbytes: int) -> torch.UntypedStorage:
    path = PLACE / f"{os.getpid()}-{next(_numbers)}"
    storage = torch.UntypedStorage.from_file(str(path), True, nbytes)  # noqa: FBT003
    _allocated[path] = []
    weakref.finalize(storage, _drop, path).atexit = False
    return storage


def _drop(path: Path) -> None:
    _limbo.append(path)
    _collect()


def _collect() -> None:
    for path in [path for path in _limbo if not any(map(_count, _allocated[path]))]:
        _limbo.remove(path)
        path.write_bytes(b"\xff" * path.stat().st_size)
        del _allocated[path]


def _share(storage: torch.UntypedStorage) -> tuple:
    if storage in _opened:
        raise RuntimeError(
            "Attempted to send CUDA tensor received from another process; this is not currently supported. "
            "Consider cloning before sending."
        )
    if storage.filename is None:  # a clone
        storage.on_gpu = _allocate(storage.nbytes()).copy_(storage)
        storage = storage.on_gpu
    path, counter = Path(storage.filename), next(_numbers)
    _allocated[path].append(counter)
    _set_count(_counts(), counter, 1)
    _finished(path).unlink(missing_ok=True)
    return (0, os.fsencode(path), storage.nbytes(), 0, os.fsencode(_counts()), counter, b"event", True)


def _open(*arguments: object) -> torch.UntypedStorage:
    handle = CudaHandle(*arguments)
    path = Path(os.fsdecode(handle.handle))
    owner, _, _ = path.name.partition("-")
    if int(owner) == os.getpid():
        raise RuntimeError("CUDA error: invalid device context\nand how to debug it")
    if not Path(f"/proc/{owner}").exists():
        raise RuntimeError("CUDA error: invalid argument\nand how to debug it")
    if not (handle.must_wait or _finished(path).exists()):
        raise AssertionError("what its owner has asked for was not waited for")
    storage = torch.UntypedStorage.from_file(str(path), True, handle.nbytes)  # noqa: FBT003
    _opened.add(storage)
    weakref.finalize(storage, _release, handle.counter_file, handle.counter).atexit = False
    return storage


def _release(counter_file: bytes, counter: int) -> None:
    file = Path(os.fsdecode(counter_file))
    if file.exists():
        _set_count(file, counter, _count(counter, file) - 1)


def _synchronize(_: object = None) -> None:
    for path in list(_allocated):  # a queue's thread may allocate meanwhile
        _finished(path).touch()


def _finished(path: Path) -> Path:
    return path.with_name(f"{path.name}-finished")


def _counts() -> Path:
    return PLACE / f"{os.getpid()}-counts"


def _count(counter: int, file: Path | None = None) -> int:
    with (file or _counts()).open("rb") as counts:
        counts.seek(8 * counter)
        return struct.unpack("q", counts.read(8))[0]


def _set_count(file: Path, counter: int, count: int) -> None:
    file.touch()
    with file.open("r+b") as counts:
        counts.seek(8 * counter)
        counts.write(struct.pack("q", count))


torch.UntypedStorage._share_cuda_ = _share
torch.UntypedStorage._new_shared_cuda = staticmethod(_open)
torch.UntypedStorage._release_ipc_counter_cuda = staticmethod(_release)
torch.cuda.init, torch.cuda.synchronize = lambda: None, _synchronize
torch.cuda.is_initialized, torch.cuda.device_count = lambda: True, lambda: 1
torch.cuda.memory_reserved, torch._C._cuda_hasPrimaryContext = lambda _: allocated(), lambda _: True
for room in (cuda, plain_torch, storages, reducer):
    room.is_on_cuda = is_on_cuda
_is_plain = plain_tensors._is_plain
plain_tensors._is_plain = lambda tensor: not is_on_cuda(tensor.untyped_storage()) and _is_plain(tensor)
borrowers.PATIENCE = 0.1
