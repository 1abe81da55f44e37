"""Shared memory ahead of a parallel cell: `share`, `empty`, `zeros`."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from nbshm.errors import CallInterrupted, ParallelError
from nbshm.processes.kernel_signals import interrupts_put_off
from nbshm.told_errors import told_in_words

if TYPE_CHECKING:
    import numpy as np

    from nbshm.memory.shared.segments import Segments

T = TypeVar("T")

_INTERRUPTED = "nbshm.share was interrupted. What it has not moved is where it was."


class Sharer(Protocol):
    """Whose memory it is: the notebook's, or a worker's."""

    @property
    def segments(self) -> Segments:
        """The shared memory that this process maps."""

    def mappings(self) -> list[dict[Any, Any]]:
        """Return the namespace, and others in which the person's values have names."""


class _Process:
    """A process in which nbshm is not at work: a script, a child of plain multiprocessing."""

    @functools.cached_property
    def segments(self) -> Segments:
        """The shared memory that this process has made."""
        from nbshm.memory.shared.segments import Segments  # noqa: PLC0415  # nothing of memory is needed to load

        return Segments()

    def mappings(self) -> list[dict[Any, Any]]:
        """Return the main module's namespace."""
        return [vars(sys.modules["__main__"])]


class _Here:
    """Whose memory is shared here, which is as much a fact of the process as its pid."""

    def __init__(self) -> None:
        self.sharer: Sharer = _Process()


_here = _Here()


@contextlib.contextmanager
def sharing_for(sharer: Sharer) -> Iterator[None]:
    """Share the memory of that sharer while this is entered."""
    before, _here.sharer = _here.sharer, sharer
    try:
        yield
    finally:
        _here.sharer = before


def share(x: T) -> T:
    """Move the memory of a tensor, an array, a module, or of what holds some, to shared memory now.

    A parallel cell does so when it first uses them; done before, that cell does not have to. What lies in
    shared memory already stays. Lists, dictionaries, dataclasses and objects of your classes may be
    nested; of a module or an optimizer all parameters, buffers and states are moved. Returned is `x` itself,
    or for an array the shared array that takes its place.

    Aliases. A tensor moves in place: all that refers to it or to its storage follows. An array can't: the
    notebook's names for it and for views of it (`Out` too) are bound to shared ones, and so is what holds
    arrays inside of `x`. The local variables of the function that calls keep the old array: write
    `a = nbshm.share(a)`. If anything else holds the array (a list, a figure, a tuple), it is refused, because
    that would silently stay behind; share that along with it, or a copy.

    In a worker what is shared with the notebook stays so; anything else can be seen by the worker's own
    children.

    Raises
    ------
    TypeError
        There is nothing in `x` that could be shared: a number, a frame (its arrays are read by all workers
        without a copy for each anyway).
    nbshm.CannotSend
        Something in `x` can't be shared, with the reason.
    nbshm.NoRoom
        It does not fit; nothing has been changed.

    """
    given, argument = (x,), None
    del x  # who holds it is counted
    _renew_locals(sys._getframe())  # noqa: SLF001  # as below
    sharer = _here.sharer
    try:
        with told_in_words(CallInterrupted(_INTERRUPTED)), interrupts_put_off() as heed:
            from nbshm.memory import sharing  # noqa: PLC0415  # nothing of memory is needed to load
            from nbshm.memory.ownership import slots  # noqa: PLC0415  # as above

            argument = slots.Argument(given)
            shared: T = sharing.share(
                argument,
                sys._getframe(1),  # noqa: SLF001  # documented, and the only way to know the caller
                mappings=sharer.mappings(),
                segments=sharer.segments,
                heed=heed,
            )
            return shared
    except (CallInterrupted, ParallelError, TypeError) as error:
        del given, argument  # the traceback would hold what is refused, and be why it is the next time
        _renew_locals(sys._getframe())  # noqa: SLF001  # as above
        raise error.with_traceback(None) from error.__cause__


def _renew_locals(frame: FrameType) -> None:
    """Have a frame forget variables that were deleted: where calls are traced, it has a copy of them."""
    len(frame.f_locals)


def empty(
    shape: int | Sequence[int], dtype: Any = float, order: Literal["C", "F"] = "C"
) -> np.ndarray[Any, np.dtype[Any]]:
    """Make an array in shared memory, with anything in it.

    `shape`, `dtype` and `order` are those of `numpy.empty`. A parallel cell uses it without a copy; views of
    it are shared like itself, in lists and objects of your classes too.

    Raises
    ------
    TypeError
        The dtype holds Python objects, which processes can't share.
    nbshm.NoRoom
        There is less memory left than it needs.

    """
    with interrupts_put_off():  # numpy that was imported by half can't be imported again
        from nbshm.memory.shared.fresh import new_array  # noqa: PLC0415  # imports numpy

    return new_array(shape, dtype, order, name="nbshm.empty", make=_here.sharer.segments.create)


def zeros(
    shape: int | Sequence[int], dtype: Any = float, order: Literal["C", "F"] = "C"
) -> np.ndarray[Any, np.dtype[Any]]:
    """Make an array of zeros in shared memory, which takes no room before it is written.

    As `nbshm.empty` otherwise, and as `numpy.zeros`.
    """
    with interrupts_put_off():  # as above
        from nbshm.memory.shared.fresh import new_array  # noqa: PLC0415  # imports numpy

    return new_array(shape, dtype, order, name="nbshm.zeros", make=_here.sharer.segments.create_zeroed)
