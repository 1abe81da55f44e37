"""A worker's work: build `__main__`, run the body in it, and give back what came of it."""

from __future__ import annotations

import atexit
import importlib
import io
import mmap
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import process
from types import FrameType, ModuleType
from typing import Any

import nbshm
from nbshm.events import Exited, Failed, Interrupted, Started
from nbshm.failures.chains import trim
from nbshm.failures.tracebacks import report_exception
from nbshm.jobs import Job, Outcome
from nbshm.memory.mapping import MappedSegments
from nbshm.memory.shared.segments import Segments
from nbshm.notebook.namespace import Notebook
from nbshm.own_code import OWN_DIRECTORY
from nbshm.plain.hooks import PlainMultiprocessing
from nbshm.sharing import sharing_for
from nbshm.wire.board import Board
from nbshm.wire.descriptors import received_descriptors
from nbshm.wire.messages import Release
from nbshm.worker.acquiring import show_acquiring
from nbshm.worker.bars import Bars
from nbshm.worker.bodies import BodyExited, BodyInterrupted, BodyRaised, BodyValue, run_body
from nbshm.worker.giving_back import give_back
from nbshm.worker.gpu_memory import GpuNotices
from nbshm.worker.inheritance import keep_from_programs
from nbshm.worker.life import Seat
from nbshm.worker.main_module import build, new_main_module
from nbshm.worker.ranks import Rank, being
from nbshm.worker.results import ResultPickling
from nbshm.worker.shell import warm_up
from nbshm.worker.streams import Voice
from nbshm.worker.surroundings import apply_surroundings
from nbshm.worker.unheard_logging import tell_of_unheard_records
from nbshm.worker.value_stream import ValueStream
from nbshm.worker.wait_notices import WaitNotices
from nbshm.worker.whereabouts import Notice

_NOBODYS = (OWN_DIRECTORY, "<frozen importlib", os.path.join(os.path.dirname(importlib.__file__), ""))  # noqa: PTH118, PTH120  # as co_filename is
"""Where frames are of no use to the person: what builds `__main__`, and the import of a module."""


def run(payload: bytearray, fds: list[int], seat: Seat) -> int:
    """Do a job and return the exit code; the descriptors are owned from now on."""
    keep_from_programs()
    job: Job = pickle.loads(payload)
    values, board, *others = fds
    segments, carried = others[: len(job.segments)], others[len(job.segments) :]
    with ExitStack() as stack:
        mapping = stack.enter_context(
            MappedSegments(segments, job.segments, stay_shared=job.stay_shared, cuda=job.cuda)
        )
        rank = stack.enter_context(being(_rank(seat, Board(board, seat.nprocs))))
        watch = apply_surroundings(job.surroundings, rank=seat.rank, nprocs=seat.nprocs)
        stack.callback(watch.close)
        tell_of_unheard_records(job.surroundings.handled, seat.tell)
        Bars(rank.loops).follow(watch)
        watch.when_imported("multiprocessing.synchronize", show_acquiring)
        module = sys.modules["__main__"] if job.forked else new_main_module()
        atexit.register(_free_what_was_handed_over, module)  # before any of the notebook's: it comes last
        stack.enter_context(sharing_for(_Memory(segments=mapping.segments, namespace=vars(module))))
        cells = _know_cells(job)
        known = warm_up().compile.cells
        seat.whereabouts.follow(known, _notices(seat, known))
        notebook = Notebook(namespace=vars(module), cells=cells)
        plain = PlainMultiprocessing(notebook, keeper=lambda: job.keeper)
        watch.when_imported("torch", lambda _: _care_for_plain_torch(mapping, plain))
        if seat.nprocs > 1:
            watch.when_imported("torch", lambda _: _watch_replicas(mapping, seat))
        try:
            with received_descriptors(carried), mapping.loading(job.places):
                definitions = build(module, job.program, _stream(values).load)
        except Exception as error:  # noqa: BLE001  # imports, definitions and unpickling run what they like
            return _unprepared(error, seat)
        _complete(module, plain, seat)
        seat.say(Started(rank=seat.rank, pid=os.getpid()))
        return _run(
            job,
            module,
            seat,
            ResultPickling(
                definitions=definitions, mapping=mapping, namespace=vars(module), spare=_spare(job, seat.rank)
            ),
        )


def _spare(job: Job, rank: int) -> int | None:
    """Return the number of the segment that is there for what a rank gives back, if one is."""
    return len(job.segments) - job.spares + rank if rank < job.spares else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """Whose memory `nbshm.share` shares here: this worker's."""

    segments: Segments
    namespace: dict[str, Any]

    def mappings(self) -> list[dict[Any, Any]]:
        return [self.namespace]


def _notices(seat: Seat, cells: dict[str, int]) -> Notice:
    """Return what is done at each look at the main thread: see what it waits for, and what it has on GPUs."""
    waits, memory = WaitNotices(seat.rank, cells, seat.mention), GpuNotices(seat.rank, seat.mention)

    def notice(frame: FrameType | None) -> None:
        waits.look(frame)
        memory.look()

    return notice


def _rank(seat: Seat, board: Board) -> Rank:
    return Rank(
        seat.rank,
        seat.nprocs,
        say=seat.say,
        wait_release=lambda: seat.wait_for(Release).broken,
        board=board,
    )


def _care_for_plain_torch(mapping: MappedSegments, plain: PlainMultiprocessing) -> None:
    """Have queues and DataLoaders in this worker hand shared storages on instead of moving them away."""
    from nbshm.memory.tensors.plain_torch import PlainTorch  # noqa: PLC0415  # imports torch

    PlainTorch(mapping.segments, keep=plain.keep).install()


def _watch_replicas(mapping: MappedSegments, seat: Seat) -> None:
    """Say so when this rank gives DistributedDataParallel the notebook's own parameters."""
    from nbshm.worker.data_parallel import tell_of_shared_replicas  # noqa: PLC0415  # imports torch

    tell_of_shared_replicas(mapping.holds, seat.tell)


def _stream(fd: int) -> ValueStream:
    """Return the stream of values; all ranks read the same file, each at its own place."""
    size = os.fstat(fd).st_size
    file = mmap.mmap(fd, size, access=mmap.ACCESS_READ) if size else io.BytesIO()
    os.close(fd)
    return ValueStream(file)


def _know_cells(job: Job) -> dict[str, int]:
    """Have a shell that calls the notebook's cells by their numbers, which are returned."""
    shell = warm_up()
    shell.compile.flags |= job.flags
    cells = {name: cell.number for name, cell in job.program.cells.items() if cell.number is not None}
    shell.know_cells(cells)
    return cells


def _unprepared(error: Exception, seat: Seat) -> int:
    """Tell what an import, a definition or a value has raised here, as the notebook would show it."""
    trim(error, _NOBODYS)
    seat.say(Failed(rank=seat.rank, report=warm_up().report(error), preparing=True))
    return 1


def _complete(module: ModuleType, plain: PlainMultiprocessing, seat: Seat) -> None:
    """Add what every body finds beside the notebook's names, and let children of this process know all."""
    vars(module).update(rank=seat.rank, nprocs=seat.nprocs, nbshm=nbshm)
    plain.install()


def _free_what_was_handed_over(module: ModuleType) -> None:
    """Free memory on GPUs that others were given, where the process ends as a program, as under spawn.

    torch frees nothing then that a module holds, and complains of that. Where nothing was handed over the
    module stays as it is: daemon threads go on using its names.
    """
    cuda = sys.modules.get("nbshm.memory.tensors.cuda")
    if cuda is not None and cuda.has_handed_over():
        vars(module).clear()


def _run(job: Job, module: ModuleType, seat: Seat, results: ResultPickling) -> int:
    voice = Voice(rank=seat.rank, say=seat.say, token=job.token)
    if job.body.daemon:
        process.current_process().daemon = True
    tell_of_parameters = _watch_parameters(vars(module), seat)
    seat.whereabouts.look_closely()
    end = run_body(job.body, module, voice=voice, interrupted=seat.interrupts.arrived, dumps=results.dumps)
    match end:
        case BodyValue(value=value):
            wrong = _finish_on_gpus()
            if wrong is not None:
                seat.say(Failed(rank=seat.rank, report=report_exception(wrong)))
                return 1
            tell_of_parameters()
            bound = {name: vars(module)[name] for name in job.out if name in vars(module)}
            return give_back(Outcome(value=value, out=bound), seat, results, lenient=job.body.is_call)
        case BodyRaised(report=report):
            seat.say(Failed(rank=seat.rank, report=report))
        case BodyExited(code=code, text=text, line=line):
            seat.say(Exited(rank=seat.rank, code=code, text=text, line=line))
            return code
        case BodyInterrupted():
            seat.say(Interrupted(rank=seat.rank))
    return 1


def _watch_parameters(namespace: dict[str, Any], seat: Seat) -> Callable[[], None]:
    """Return what tells of parameters of the notebook's that the body has given other memory."""
    if "torch" not in sys.modules:
        return lambda: None
    from nbshm.worker.parameters import NotebooksParameters, in_words  # noqa: PLC0415  # imports torch

    parameters = NotebooksParameters(namespace)

    def tell() -> None:
        moved = parameters.given_other_memory()
        if moved:
            seat.tell(in_words(moved))

    return tell


def _finish_on_gpus() -> Exception | None:
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
