"""Placing: the notebook's memory put where workers can reach it, and brought back.

Decisions are made first (`decisions.py`), then room is made for all of them (`fitting.py`); only then is
memory moved. So what can't be done is refused before anything has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from nbshm.closing import Closing
from nbshm.errors import CannotSend
from nbshm.garbage import collection_put_off
from nbshm.jobs import CudaHandle, Parcel
from nbshm.memory.buffers import Buffers
from nbshm.memory.decisions import Copied, Decision, Moves, Stays, decide
from nbshm.memory.fitting import make_room
from nbshm.memory.homecoming import Homecoming, OwnMemory, Spot
from nbshm.memory.loading import loading
from nbshm.memory.ownership.address_space import AddressSpace
from nbshm.memory.ownership.extents import Range
from nbshm.memory.ownership.names import NotebookNames
from nbshm.memory.shared.copying import copy, fill
from nbshm.memory.shared.releasing import wait_until_released
from nbshm.memory.shared.segments import Segment, Segments
from nbshm.refusals import Unshareable


@collection_put_off()
def place(
    buffers: Buffers,
    *,
    names: NotebookNames,
    segments: Segments,
    reserved: int,
    results: int = 0,
    heed: Callable[[], object] = lambda: None,
) -> Placement:
    """Put all memory of the buffers into segments, or find the ones that it is in.

    `reserved` is how many descriptors must be left for others; `results` how many may come back. `heed` is
    called between two pieces of memory, and may raise: what has been moved by then stays where it is.

    Raises
    ------
    NoRoom
        It does not fit; nothing has been changed.
    CannotSend
        CUDA does not hand over what lies on a GPU; nothing has been changed.

    """
    with ExitStack() as undo:
        cuda = hand_over(buffers.cuda, names)
        space = undo.enter_context(AddressSpace())
        decisions = decide(buffers, names=names, segments=segments, space=space)
        note = segments.spares.expect
        spots = list(carry_out(decisions, buffers, names, segments, reserved=reserved, note=note, heed=heed))
        held = undo.pop_all()
    spares = segments.use_spares(results)
    return Placement(buffers, spots, segments=segments, held=held, spares=spares, cuda=cuda)


class Placement(Closing):
    """The memory of one run, from before its workers start until after they have ended.

    `fds` and `sizes` describe the segments to hand to each worker, in order; `places` says for each buffer
    where it lies in them. Those numbered in `stay_shared` were asked to be shared, with forked children too.
    The last `spares` of them are for what ranks give back. Workers open storages on GPUs by `cuda`.
    """

    def __init__(
        self,
        buffers: Buffers,
        spots: Sequence[Spot],
        *,
        segments: Segments,
        held: ExitStack,
        spares: Sequence[Segment],
        cuda: Sequence[CudaHandle],
    ) -> None:
        self._spots = spots
        self._segments = segments
        self._held = held
        self._lent_masks = buffers.lent_masks
        self.cuda = tuple(cuda)
        self._own = OwnMemory(buffers, spots)
        self._spares = tuple(spares)
        handed = (*self._own.homes, *spares)
        self.fds = tuple(home.fd for home in handed)
        self.sizes = tuple(home.nbytes for home in handed)
        self.stay_shared = frozenset(
            number
            for number, home in enumerate(self._own.homes)
            if not isinstance(home, Segment)
            or home.stays_shared  # a file is shared by torch, or by its own nature
        )
        self.spares = len(spares)
        self.places = self._own.places

    def loading(self, parcel: Parcel, fds: Sequence[int]) -> AbstractContextManager[None]:
        """Let a worker's parcel be unpickled inside; it comes with `fds`, which are owned from now on.

        What lies in the segments of this run becomes the notebook's own memory again. What came with the
        parcel stays valid after the worker is gone.
        """
        return loading(Homecoming(self._own, self._spares, parcel, fds, segments=self._segments))

    def mirrored(self) -> list[Range]:
        """Return the notebook's memory that `copy_back` would write to now; from any thread."""
        own = self._own  # `close` gives it up after the spots
        pieces = [piece for spot in self._spots if spot.back for piece in own.whereabouts(spot.region)]
        return [(piece.address, piece.address + piece.nbytes) for piece in pieces]

    def copy_back(self) -> None:
        """Copy what workers wrote into mirrors to the notebook's memory.

        To be called once the workers have ended, however they did. Doing it twice does no harm.
        """
        for spot in self._spots:
            if spot.back and isinstance(spot.home, Segment):
                source = spot.home.address + spot.offset
                for piece in self._own.whereabouts(spot.region):
                    copy(to=piece.address, source=source + piece.begin, nbytes=piece.nbytes)
        for lent in self._lent_masks:
            lent.hand_over()

    def close(self) -> None:
        """Give up what only the run needed; memory that was moved stays as long as the notebook uses it."""
        self._held.close()
        self._spots = []
        self._own = OwnMemory(Buffers(), [])
        self._spares = ()
        self._lent_masks = ()


def carry_out(
    decisions: Sequence[Decision],
    buffers: Buffers,
    names: NotebookNames,
    segments: Segments,
    *,
    reserved: int,
    note: Callable[[int], None],
    heed: Callable[[], object] = lambda: None,
) -> Iterator[Spot]:
    """Do what has been decided, once there is room for all of it, and yield where memory lies now.

    `note` is told how many bytes that fills, `heed` called between two pieces.
    """
    wanted = [decision for decision in decisions if not isinstance(decision, Stays)]
    layout, made = make_room(wanted, names=names, segments=segments, reserved=reserved)
    note(sum(layout.sizes))
    for decision in decisions:
        if isinstance(decision, Stays):
            original = None if isinstance(decision.home, Segment) else decision.region.address
            yield Spot(region=decision.region, home=decision.home, offset=decision.offset, original=original)
    for decision, (number, offset) in zip(wanted, layout.spots, strict=True):
        heed()
        wait_until_released()  # only so much room was made
        yield _fill(decision, made[number], offset, buffers)


def _fill(decision: Moves | Copied, segment: Segment, offset: int, buffers: Buffers) -> Spot:
    region = decision.region
    match decision:
        case Moves():
            decision.move(segment, offset)
            _let_go(buffers, region.numbers)
            return Spot(region=region, home=segment, offset=offset)
        case Copied():
            fill(segment, offset, source=region.address, nbytes=region.nbytes)
            return Spot(
                region=region,
                home=segment,
                offset=offset,
                original=region.address,
                back=decision.back,
                held=_held_in_place(buffers, region.numbers) if decision.back else (),
            )


def _held_in_place(buffers: Buffers, numbers: Sequence[int]) -> list[object]:
    """Keep storages from being moved, by a cell that runs meanwhile, away from what is copied back to them.

    That an array is held by its buffer is enough.
    """
    storages = [buffers[number].keeper for number in numbers if buffers[number].kind == "storage"]
    if not storages:
        return []
    from nbshm.memory.tensors.storages import held_in_place  # noqa: PLC0415  # imports torch, which is there if a storage is

    return [held_in_place(storage) for storage in storages]


def _let_go(buffers: Buffers, numbers: Sequence[int]) -> None:
    """Forget arrays that were moved: they are the last to hold the old memory. Storages stay who they are."""
    for number in numbers:
        if buffers[number].kind == "array":
            buffers[number].keeper = None


def hand_over(storages: Sequence[Any], names: NotebookNames) -> list[CudaHandle]:
    """Have CUDA hand the notebook's storages over, as what was asked of it leaves them.

    Raises
    ------
    CannotSend
        It does not do so with one of them.

    """
    if not storages:
        return []
    from nbshm.memory.tensors import cuda  # noqa: PLC0415  # imports torch

    handles = []
    for storage in storages:
        with _refusing(storage, names):
            handles.append(cuda.handle_of(storage))
    cuda.finish(storages)
    return handles


@contextmanager
def _refusing(storage: Any, names: NotebookNames) -> Iterator[None]:
    try:
        yield
    except Unshareable as error:
        name = names.name_of(storage.data_ptr(), storage.nbytes())
        remedy = error.remedy if name is None else error.remedy_for(name)
        raise CannotSend(
            name or "a CUDA tensor", reason=error.reason, remedy=remedy, action="share"
        ) from None
