"""One pass: everything that is known to be needed, written down in an order that works."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Generic

from nbshm.definitions.names import code_attributes
from nbshm.jobs import Program
from nbshm.packing.circles import Stack
from nbshm.packing.draft import Draft
from nbshm.packing.knowledge import Knowledge, LearntError
from nbshm.packing.order import Order
from nbshm.packing.references import Reference, References
from nbshm.packing.tail import tail
from nbshm.packing.values import PicklerT, Values


class Pass(Generic[PicklerT]):
    """One attempt at a program, with a pickler of its own."""

    def __init__(self, knowledge: Knowledge, make_pickler: Callable[[Reference], PicklerT]) -> None:
        needs = knowledge.needs
        self._knowledge = knowledge
        self._draft = Draft(late=dict(needs.extra), attributes=set(needs.attributes))
        stack = Stack(knowledge, self._draft)
        references = References(knowledge, defined=stack.ask_for, by_value=self._note_function)
        self._values = Values(knowledge, make_pickler, references)
        self._order = Order(knowledge, self._draft, stack, self._values)

    @property
    def pickler(self) -> PicklerT:
        """The pickler that has the values."""
        return self._values.pickler

    def program(self) -> Program:
        """Write everything down, or raise `LearntError` for another attempt."""
        settled = self._settle_names()
        late = tail(self._draft, self._knowledge)
        self._values.dump_tail(late)
        if len(self._knowledge.users) > len(settled):
            raise LearntError
        self._draft.imports.add_submodules(self._draft.attributes)
        return Program(
            steps=(*self._draft.imports.steps, *self._draft.steps),
            late=tuple(step for step, *_ in late),
            values=self.pickler.stream,
            cells=self._draft.cells(self._knowledge.notebook.cells),
            left_out=dict(self._knowledge.dropped),
        )

    def _settle_names(self) -> set[str]:
        """Settle the names that are needed; a definition that is written down may bring new ones."""
        settled: set[str] = set()
        while fresh := [name for name in self._knowledge.users if name not in settled]:
            settled.update(fresh)
            for name in fresh:
                self._order.settle(name)
        return settled

    def _note_function(self, function: FunctionType) -> None:
        """Note what a function brings along that travels by value: the names it reads, and its cell."""
        self._knowledge.note_function(function)
        self._draft.files.add(function.__code__.co_filename)
        self._draft.attributes |= code_attributes(function.__code__)
