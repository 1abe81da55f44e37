"""Memory that is moved now: ahead of a cell, or with what forked workers inherit because it can't be sent."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from types import FrameType
from typing import Any, TypeAlias

from nbshm.memory.buffers import Buffers
from nbshm.memory.capturing import CapturingPickler
from nbshm.memory.decisions import Copied, Moves, decide
from nbshm.memory.move_refusals import cannot_move, name_of
from nbshm.memory.ownership.address_space import AddressSpace
from nbshm.memory.ownership.contents import arrays_of_libraries, pieces_of, tensors_and_arrays
from nbshm.memory.ownership.kinds import is_array
from nbshm.memory.ownership.names import NotebookNames
from nbshm.memory.ownership.slots import Argument, Locals, slots_in
from nbshm.memory.placing import carry_out
from nbshm.memory.shared.segments import Segment, Segments
from nbshm.refusals import refusal

Mappings: TypeAlias = Sequence[MutableMapping[Any, Any]]


def share(
    argument: Argument,
    caller: FrameType,
    *,
    mappings: Mappings,
    segments: Segments,
    heed: Callable[[], object],
) -> Any:
    """Move the memory of a value into segments; return the value, or the array in its place.

    `mappings` are the namespace and others in which arrays have names. `heed` is called between two pieces of
    memory, and may raise.

    Raises
    ------
    TypeError
        There is nothing in it that could be shared.
    CannotSend
        Something in it can't be shared, or what can't follow holds it.
    NoRoom
        It does not fit; nothing has been changed.

    """
    # Before anything here holds an array: whatever does counts as a holder that can't follow.
    slots = _without(slots_in(argument.value), mappings)
    known = [*mappings, argument, Locals(caller), *slots]
    names = NotebookNames(*known)
    buffers = _buffers(argument.value, mappings[0])
    with AddressSpace() as space:
        # A small tensor too is worth a look at all objects: it can't be mirrored here.
        decisions = decide(buffers, names=names, segments=segments, space=space, worth_a_walk=0)
        for decision in decisions:
            if isinstance(decision, Copied):
                raise cannot_move(decision.region, argument.value, buffers, names, known)
        note = segments.spares.expect
        for spot in carry_out(decisions, buffers, names, segments, reserved=0, note=note, heed=heed):
            if isinstance(spot.home, Segment):
                spot.home.stay_shared()
    return argument.value


def move_unsent(
    values: Mapping[str, Any], *, mappings: Mappings, segments: Segments, reserved: int
) -> list[str]:
    """Move what can be moved of values that can't be sent; return the names of those of which more is left.

    Elsewhere the rest would be mirrored. `reserved` is how many descriptors must be left for others.

    Raises
    ------
    NoRoom
        It does not fit.

    """
    names = NotebookNames(*mappings)
    note = segments.spares.expect_more  # all of it belongs to one run, which has said what it fills
    left = []
    for name, value in values.items():
        buffers = _buffers_as_far_as_possible(value)
        with AddressSpace() as space:
            decisions = decide(buffers, names=names, segments=segments, space=space, worth_a_walk=0)
        moves = [decision for decision in decisions if isinstance(decision, Moves)]
        list(carry_out(moves, buffers, names, segments, reserved=reserved, note=note))
        if any(isinstance(decision, Copied) and decision.back for decision in decisions):
            left.append(name)
    return left


def _buffers_as_far_as_possible(value: Any) -> Buffers:
    """Return the memory of the tensors and arrays in a value, also of those that can't be sent themselves."""
    pickler = _pickler()
    for part in tensors_and_arrays(value):
        try:
            pickler.dump(part)
        except Exception:  # noqa: BLE001, PERF203  # a part of a graph, say: its storage may move all the same
            with contextlib.suppress(Exception):  # it has none, or one that can't be shared
                pickler.dump(part.untyped_storage())
    pickler.forget()
    return pickler.buffers


def _buffers(value: Any, namespace: MutableMapping[Any, Any]) -> Buffers:
    """Return the memory of the tensors and arrays in a value."""
    parts = list(tensors_and_arrays(value))
    _check_parts(value, parts)
    pickler = _pickler()
    try:
        pickler.dump([piece for part in parts for piece in pieces_of(part)])
    except Exception as error:  # whatever a tensor's own pickling raises
        problem = refusal(
            name_of(value, namespace),
            value,
            error,
            user=None,
            again=lambda part: _pickler().dump(list(tensors_and_arrays(part))),
        )
        raise problem from error
    pickler.forget()
    return pickler.buffers


def _check_parts(value: Any, parts: Sequence[Any]) -> None:
    """Raise TypeError where nothing in a value could be shared."""
    if not parts and arrays_of_libraries(value):
        kind = type(value).__name__
        raise TypeError(
            f"nbshm.share: all ranks read the arrays in a {kind} without a copy anyway, but what they write "
            f"there is their own; share an array, and make the {kind} from that after the cell."
        )
    if not parts:
        raise TypeError(
            f"nbshm.share: there is no memory to share in a value of type {type(value).__name__}; "
            "give it a tensor, an array, a module, or a list, a dictionary or an object of the notebook that "
            "holds some."
        )
    if all(is_array(part) and part.dtype.hasobject for part in parts):
        raise TypeError(
            f"nbshm.share: an array of {parts[0].dtype} can't be shared, as its elements lie elsewhere; "
            "a parallel cell sends each rank a copy."
        )


def _pickler() -> CapturingPickler:
    return CapturingPickler(lambda _: NotImplemented, others={})


def _without(slots: Mappings, mappings: Mappings) -> Mappings:
    there = {id(mapping) for mapping in mappings}
    return [slot for slot in slots if id(slot) not in there]
