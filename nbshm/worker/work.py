"""A worker's work: build `__main__`, run the body in it, and give back what came of it."""

from __future__ import annotations

import atexit
import importlib
import io
import mmap
import os
import pickle
import sys
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
from nbshm.worker.forks import end_forked_child
from nbshm.worker.giving_back import give_back
from nbshm.worker.gpu_memory import GpuNotices
from nbshm.worker.imports import ImportWatch
from nbshm.worker.inheritance import keep_from_programs
from nbshm.worker.life import Seat
from nbshm.worker.main_module import build, new_main_module
from nbshm.worker.ranks import Rank, being
from nbshm.worker.results import ResultPickling
from nbshm.worker.shell import warm_up
from nbshm.worker.streams import Voice
from nbshm.worker.surroundings import apply_surroundings
from nbshm.worker.torch_memory import (
    finish_on_gpus,
    follow_torch,
    free_what_was_handed_over,
    watch_parameters,
)
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
        _tell_of_libraries(job, rank, watch, seat)
        module = _main_module(job)
        stack.enter_context(sharing_for(_Memory(segments=mapping.segments, namespace=vars(module))))
        notebook = Notebook(namespace=vars(module), cells=_know_cells(job, seat))
        plain = PlainMultiprocessing(notebook, keeper=lambda: job.keeper)
        follow_torch(watch, mapping, plain, seat)
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


def _rank(seat: Seat, board: Board) -> Rank:
    return Rank(
        seat.rank,
        seat.nprocs,
        say=seat.say,
        wait_release=lambda: seat.wait_for(Release).broken,
        board=board,
    )


def _tell_of_libraries(job: Job, rank: Rank, watch: ImportWatch, seat: Seat) -> None:
    """Have the kernel told what libraries say in ways of their own: logs, progress bars, waits for locks."""
    tell_of_unheard_records(job.surroundings.handled, seat.tell)
    Bars(rank.loops).follow(watch)
    watch.when_imported("multiprocessing.synchronize", show_acquiring)


def _main_module(job: Job) -> ModuleType:
    """Return the `__main__` to be: the notebook's own in a forked worker, else an empty one."""
    module = sys.modules["__main__"] if job.forked else new_main_module()
    atexit.register(free_what_was_handed_over, module)  # before any of the notebook's: it comes last
    return module


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """Whose memory `nbshm.share` shares here: this worker's."""

    segments: Segments
    namespace: dict[str, Any]

    def mappings(self) -> list[dict[Any, Any]]:
        return [self.namespace]


def _know_cells(job: Job, seat: Seat) -> dict[str, int]:
    """Have the shell, and what looks at waits, know the notebook's cells by their numbers; return these."""
    shell = warm_up()
    shell.compile.flags |= job.flags
    cells = {name: cell.number for name, cell in job.program.cells.items() if cell.number is not None}
    shell.know_cells(cells)
    known = shell.compile.cells
    seat.whereabouts.follow(known, _notices(seat, known))
    return cells


def _notices(seat: Seat, cells: dict[str, int]) -> Notice:
    """Return what is done at each look at the main thread: see what it waits for, and what it has on GPUs."""
    waits, memory = WaitNotices(seat.rank, cells, seat.mention), GpuNotices(seat.rank, seat.mention)

    def notice(frame: FrameType | None) -> None:
        waits.look(frame)
        memory.look()

    return notice


def _stream(fd: int) -> ValueStream:
    """Return the stream of values; all ranks read the same file, each at its own place."""
    size = os.fstat(fd).st_size
    file = mmap.mmap(fd, size, access=mmap.ACCESS_READ) if size else io.BytesIO()
    os.close(fd)
    return ValueStream(file)


def _unprepared(error: Exception, seat: Seat) -> int:
    """Tell what an import, a definition or a value has raised here, as the notebook would show it."""
    trim(error, _NOBODYS)
    seat.say(Failed(rank=seat.rank, report=warm_up().report(error), preparing=True))
    return 1


def _complete(module: ModuleType, plain: PlainMultiprocessing, seat: Seat) -> None:
    """Add what every body finds beside the notebook's names, and let children of this process know all."""
    vars(module).update(rank=seat.rank, nprocs=seat.nprocs, nbshm=nbshm)
    plain.install()


def _spare(job: Job, rank: int) -> int | None:
    """Return the number of the segment that is there for what a rank gives back, if one is."""
    return len(job.segments) - job.spares + rank if rank < job.spares else None


def _run(job: Job, module: ModuleType, seat: Seat, results: ResultPickling) -> int:
    voice = Voice(rank=seat.rank, say=seat.say, token=job.token)
    if job.body.daemon:
        process.current_process().daemon = True
    tell_of_parameters = watch_parameters(vars(module), seat)
    seat.whereabouts.look_closely()
    end = run_body(job.body, module, voice=voice, interrupted=seat.interrupts.arrived, dumps=results.dumps)
    if not seat.is_heard():
        end_forked_child(end)
    match end:
        case BodyValue(value=value):
            wrong = finish_on_gpus()
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
