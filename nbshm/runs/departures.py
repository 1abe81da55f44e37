"""What workers are given: packed, placed in shared memory, ready to be sent; and the memory's way back."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from nbshm.errors import CannotSend
from nbshm.jobs import Body, Import, Job, Program
from nbshm.machine.memfds import new_memfd
from nbshm.memory.buffers import Buffers
from nbshm.memory.capturing import CapturingPickler, Picklers
from nbshm.memory.ownership.names import NotebookNames
from nbshm.memory.placing import Placement, place
from nbshm.memory.sharing import move_unsent
from nbshm.notebook.local_modules import LocalModules
from nbshm.notebook.namespace import Notebook
from nbshm.notebook.surroundings import capture_surroundings
from nbshm.options import Options
from nbshm.packing import Needs, Packed, pack
from nbshm.packing.forked_workers import pack_for_fork
from nbshm.processes.allowances import check_workers, descriptors_for
from nbshm.processes.kernel_signals import closing_undisturbed, interrupts_put_off
from nbshm.processes.semaphores import semaphore_reducers
from nbshm.session import Session
from nbshm.wire.descriptors import Collected, collecting_descriptors

_FOR_TORCH = ("nbshm.worker.preload_training",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A job with the descriptors that travel beside it.

    `names` are the notebook's names that are in it; `edited` the person's own files that it imports and that
    are newer than what the notebook has of them; `unshared` names whose arrays forked workers can't share,
    and `mirrored` those of a background run's mirrors. `generators` are the random ones that are in it.
    `values` and `board` are descriptors of files.
    """

    job: Job
    names: frozenset[str]
    edited: tuple[str, ...]
    unshared: tuple[str, ...]
    mirrored: tuple[str, ...]
    generators: tuple[Any, ...]
    placement: Placement
    values: int
    board: int
    carried: Collected

    @property
    def preload(self) -> tuple[str, ...]:
        """What to have imported in workers of later runs, which probably do the same."""
        modules = {
            step.module.partition(".")[0] for step in self.job.program.steps if isinstance(step, Import)
        }
        return _FOR_TORCH if "torch" in modules else ()

    @property
    def fds(self) -> list[int]:
        """The descriptors in the order that `Job` tells."""
        return [self.values, self.board, *self.placement.fds, *self.carried.fds]


@contextmanager
def departing(body: Body, needs: Needs, session: Session, options: Options) -> Iterator[Departure]:
    """Get a job ready to be sent; on leaving, what workers wrote is brought back to where it belongs."""
    check_workers(options.nprocs)  # before anything is moved for them
    with closing_undisturbed() as stack:
        names = NotebookNames(*session.mappings())
        # While values are pickled as well: raised where garbage is collected, an interrupt would be lost.
        with collecting_descriptors() as carried, interrupts_put_off():
            stack.callback(carried.close)
            picklers = Picklers(semaphore_reducers(session.launcher.sweeper.begin_file))
            stack.callback(picklers.forget)
            packed, unsent = _pack(needs, session.notebook, options, picklers)
        with interrupts_put_off() as heed:  # in the middle of a piece, it has been moved or copied in part
            picklers.forget()
            placement = stack.enter_context(_placed(packed.pickler.buffers, names, session, options, heed))
            unshared = _move_unsent(unsent, session, options)
            _check_mirrors(placement, names, session)
            stack.callback(placement.copy_back)
            values, board = (stack.enter_context(_memory_file(name)) for name in ("values", "board"))
            _write(values, packed.program.values)
            job = _job(body, packed.program, placement, session, options)
        session.sent, session.mirrored = packed.names, placement.mirrored()
        yield Departure(
            job=job,
            names=packed.names,
            edited=_edited(packed.program, session.modules),
            unshared=tuple(unshared),
            mirrored=_mirrored(placement, names) if options.background else (),
            generators=picklers.generators,
            placement=placement,
            values=values,
            board=board,
            carried=carried,
        )


def _pack(
    needs: Needs, notebook: Notebook, options: Options, picklers: Picklers
) -> tuple[Packed[CapturingPickler], dict[str, Any]]:
    """Return what is needed, packed, and the values with memory that can't be sent to forked workers."""
    if options.start_method == "fork":
        forked = pack_for_fork(needs, notebook, picklers.make)
        return forked.packed, forked.unsent
    return pack(needs, notebook, picklers.make), {}


def _placed(
    buffers: Buffers, names: NotebookNames, session: Session, options: Options, heed: Callable[[], object]
) -> Placement:
    """Put memory where workers can reach it, as much as leaves descriptors for them."""
    return place(
        buffers,
        names=names,
        segments=session.segments,
        reserved=descriptors_for(options.nprocs),
        results=options.nprocs,
        heed=heed,
    )


def _move_unsent(unsent: dict[str, Any], session: Session, options: Options) -> list[str]:
    """Share what can move of values that forked workers only inherit; name those with more."""
    if not unsent:
        return []
    reserved = descriptors_for(options.nprocs)
    return move_unsent(unsent, mappings=session.mappings(), segments=session.segments, reserved=reserved)


def _job(body: Body, program: Program, placement: Placement, session: Session, options: Options) -> Job:
    """Return the job; the values of the program travel beside it."""
    return Job(
        program=replace(program, values=b""),
        forked=options.start_method == "fork",
        body=body,
        out=options.out,
        places=placement.places,
        segments=placement.sizes,
        stay_shared=placement.stay_shared,
        spares=placement.spares,
        cuda=placement.cuda,
        surroundings=capture_surroundings(
            threads=options.threads,
            share=options.threads_per_worker,
            seed=options.seed,
            port=_free_port(),
        ),
        flags=session.shell.compile.flags,
        token=secrets.token_hex(8),
        keeper=session.launcher.keeper.ensure_started(),
    )


def _mirrored(placement: Placement, names: NotebookNames) -> tuple[str, ...]:
    """Return the names through which the notebook reaches what is mirrored."""
    paths = names.names_of(placement.mirrored())
    return tuple(path.partition(".")[0] if path else "memory" for path in paths)


def _check_mirrors(placement: Placement, names: NotebookNames, session: Session) -> None:
    """Refuse memory that a living run writes to when it ends: it would undo what this one has written."""
    contested = session.runs.mirroring(placement.mirrored())
    if contested is not None:
        other, piece = contested
        raise CannotSend(
            names.names_of([piece])[0] or "memory",
            reason=f"it is copied back to the notebook when {other.name} ends, which still runs",
            remedy="Wait for that run, or let nothing but a name hold the array: then all runs share it.",
            action="share",
        )


def _edited(program: Program, modules: LocalModules) -> tuple[str, ...]:
    """Return the edited files among those that a worker will import."""
    imported = {step.module for step in program.steps if isinstance(step, Import)}
    referred = {name for name in modules.names if name.encode() in program.values}
    return tuple(modules.edited(imported | referred))


@contextmanager
def _memory_file(name: str) -> Iterator[int]:
    fd = new_memfd(f"nbshm-{name}")
    try:
        yield fd
    finally:
        os.close(fd)


def _write(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def _free_port() -> int:
    """Return a port that is free now, for `torch.distributed`'s rendezvous."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
