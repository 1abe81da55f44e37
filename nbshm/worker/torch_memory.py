"""What a worker does about torch's memory, where there is torch: the notebook's own, and that on GPUs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from nbshm.memory.mapping import MappedSegments
from nbshm.plain.hooks import PlainMultiprocessing
from nbshm.worker.imports import ImportWatch
from nbshm.worker.life import Seat
from nbshm.worker.shell import warm_up
from nbshm.worker.whereabouts import place_in_cells


def follow_torch(
    watch: ImportWatch, mapping: MappedSegments, plain: PlainMultiprocessing, seat: Seat
) -> None:
    """Care for what torch code does with the notebook's memory, as soon as torch is there."""
    watch.when_imported("torch", lambda _: _care_for_plain_torch(mapping, plain))
    if seat.nprocs > 1:
        watch.when_imported("torch", lambda _: _watch_replicas(mapping, seat))
        watch.when_imported(
            "torch.distributed.distributed_c10d", lambda c10d: _watch_collectives(c10d, mapping, seat)
        )


def _care_for_plain_torch(mapping: MappedSegments, plain: PlainMultiprocessing) -> None:
    """Have queues and DataLoaders in this worker hand shared storages on instead of moving them away."""
    from nbshm.memory.tensors.plain_torch import PlainTorch  # noqa: PLC0415  # imports torch

    PlainTorch(mapping.segments, keep=plain.keep).install()


def _watch_replicas(mapping: MappedSegments, seat: Seat) -> None:
    """Say so when this rank gives DistributedDataParallel the notebook's own parameters."""
    from nbshm.worker.data_parallel import tell_of_shared_replicas  # noqa: PLC0415  # imports torch

    tell_of_shared_replicas(mapping.holds, seat.tell)


def _watch_collectives(c10d: ModuleType, mapping: MappedSegments, seat: Seat) -> None:
    """Report collectives of this rank that go over the notebook's memory."""
    from nbshm.worker.collectives import Collectives  # noqa: PLC0415  # imports torch

    def place() -> str:
        return place_in_cells(sys._getframe(), warm_up().compile.cells)  # noqa: SLF001  # the documented way

    collectives = Collectives(rank=seat.rank, spot_of=mapping.spot_of, place=place, say=seat.say)
    collectives.follow(c10d.ProcessGroup)


def watch_parameters(namespace: dict[str, Any], seat: Seat) -> Callable[[], None]:
    """Return what tells of parameters and buffers of the notebook's that the body has given other memory."""
    if "torch" not in sys.modules:
        return lambda: None
    from nbshm.worker.parameters import NotebooksParameters  # noqa: PLC0415  # imports torch

    parameters = NotebooksParameters(namespace)

    def tell() -> None:
        for line in parameters.moved().in_words():
            seat.tell(line)

    return tell


def finish_on_gpus() -> Exception | None:
    """Wait for what GPUs have been asked to do, before the process ends; return what went wrong."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    from nbshm.memory.tensors.cuda import finish_everything  # noqa: PLC0415  # imports torch

    try:
        finish_everything()
    except Exception as error:  # noqa: BLE001  # what a kernel did wrong is told when it is waited for
        return error.with_traceback(None)
    return None


def free_what_was_handed_over(module: ModuleType) -> None:
    """Free memory on GPUs that others were given, where the process ends as a program, as under spawn.

    torch frees nothing then that a module holds, and complains of that. Where nothing was handed over the
    module stays as it is: daemon threads go on using its names.
    """
    cuda = sys.modules.get("nbshm.memory.tensors.cuda")
    if cuda is not None and cuda.has_handed_over():
        vars(module).clear()
