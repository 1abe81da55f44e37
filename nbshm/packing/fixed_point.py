"""Passes over what code needs, until one learns nothing that it should have known from its start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from nbshm.jobs import Program
from nbshm.notebook.namespace import Notebook
from nbshm.packing.knowledge import Knowledge, LearntError
from nbshm.packing.needs import Needs
from nbshm.packing.one_pass import Pass
from nbshm.packing.references import Reference
from nbshm.packing.values import PicklerT

_ENDLESS = "no order was found for the notebook's definitions; this is a fault of nbshm, please report it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed(Generic[PicklerT]):
    """A program, the pickler that wrote its values, and the notebook's names that are in it."""

    program: Program
    pickler: PicklerT
    names: frozenset[str]


def pack(needs: Needs, notebook: Notebook, make_pickler: Callable[[Reference], PicklerT]) -> Packed[PicklerT]:
    """Return the program that builds a worker's `__main__`.

    `make_pickler(reference)` makes an empty pickler that asks `reference(object)` about functions, classes
    and other callables: it answers with a reduction, or NotImplemented to leave the object to the pickler.

    Raises
    ------
    CannotSend
        A value cannot travel; the message names the path to it and what to do.
    RuntimeError
        No order was found, which is a fault here.

    """
    knowledge = Knowledge(notebook=notebook, needs=needs)
    seen = {knowledge.fingerprint()}
    while True:
        attempt = Pass(knowledge, make_pickler)
        try:
            program = attempt.program()
        except LearntError:
            if knowledge.fingerprint() in seen:  # passes would follow each other for ever
                raise RuntimeError(_ENDLESS) from None
            seen.add(knowledge.fingerprint())
            continue
        return Packed(program=program, pickler=attempt.pickler, names=knowledge.names)
