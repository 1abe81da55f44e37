"""The order of a program: each definition after what its statement needs to run."""

from __future__ import annotations

from typing import Any, Generic

from nbshm.definitions.lifting import Lifted
from nbshm.jobs import Define, Load
from nbshm.packing.circles import CONTAINERS, Stack
from nbshm.packing.draft import Draft
from nbshm.packing.knowledge import Knowledge
from nbshm.packing.tail import deferred_keys, is_maker
from nbshm.packing.values import PicklerT, Values
from nbshm.refusals import Unsendable


class Order(Generic[PicklerT]):
    """Writes names down in a draft, and before each definition what must be there for it."""

    def __init__(self, knowledge: Knowledge, draft: Draft, stack: Stack, values: Values[PicklerT]) -> None:
        self._knowledge = knowledge
        self._draft = draft
        self._stack = stack
        self._values = values
        self._callable: set[str] = set()

    def settle(self, name: str) -> None:
        """Write down what a name stands for, or keep its value for the tail."""
        if not self._is_to_be_sent(name):
            return
        value, definition = self._knowledge.namespace[name], self._knowledge.definition(name)
        if definition is not None:
            self._define(definition)
        elif not self._import(name, value):
            self._draft.late[name] = value

    def _before(self, name: str) -> None:
        """See to it that a name is bound before the definition in progress runs."""
        if not self._is_to_be_sent(name):
            return
        value, definition = self._knowledge.namespace[name], self._knowledge.definition(name)
        if definition is not None:
            self._define(definition)
            self._before_call(definition)
        elif not self._import(name, value):
            self._load(name, value)

    def _is_to_be_sent(self, name: str) -> bool:
        is_done = name in self._draft.loaded or name in self._knowledge.dropped
        return self._knowledge.notebook.has(name) and not is_done

    def _define(self, definition: Lifted) -> None:
        """Write a definition down, after what its statement needs to run."""
        name = definition.name
        if name in self._draft.defined:
            return
        with self._stack.defining(name):
            self._knowledge.note_definition(definition)
            self._draft.attributes |= definition.attributes
            deferred = deferred_keys(definition, self._knowledge)
            self._before_all(definition, deferred)
            live = [key for key in definition.live if key not in deferred]
            for key in live:
                self._dump(definition.live[key], key)
        self._draft.defined[name] = definition
        self._draft.steps.append(_step(definition, live=live, deferred=deferred))

    def _before_all(self, definition: Lifted, deferred: tuple[str, ...]) -> None:
        """Bind what the statement reads when it runs, after the definitions that such values refer to."""
        for name in sorted(self._knowledge.edges.get(definition.name, ())):
            self._before(name)
        for name in sorted(definition.early.union(*(definition.deferrable[key] for key in deferred))):
            self._before(name)

    def _before_call(self, definition: Lifted) -> None:
        """Bind what a definition reads that may be *called* while the one in progress runs.

        A class body calls functions; a metaclass and `__init_subclass__` run with the class statement.
        """
        namespace = self._knowledge.namespace
        value = namespace[definition.name]
        if isinstance(value, type) and not is_maker(value):
            return
        self._callable.add(definition.name)
        waiting = [name for name in definition.late - self._callable if name not in self._stack]
        for name in sorted(waiting):
            self._before(name)
            if name in self._draft.loaded and type(namespace[name]) in CONTAINERS:
                self._draft.contents[name] = namespace[name].copy()

    def _import(self, name: str, value: Any) -> bool:
        try:
            return self._draft.imports.add(name, value)
        except Unsendable as error:
            self._values.refuse(name, error, value)

    def _load(self, name: str, value: Any) -> None:
        """Bind a value before the definition in progress runs."""
        if name in self._knowledge.emptied:
            self._draft.late[name], value = value, type(value)()
        self._dump(value, name)
        self._draft.steps.append(Load(name=name))
        self._draft.loaded.add(name)

    def _dump(self, value: Any, name: str) -> None:
        with self._stack.asked_by(name):
            self._values.dump(value, name)


def _step(definition: Lifted, *, live: list[str], deferred: tuple[str, ...]) -> Define:
    source = definition.source
    return Define(
        name=definition.name,
        text=source.text,
        origin=source.origin,
        column=source.column,
        postponed=source.postponed,
        live=tuple(live),
        blank=() if definition.is_class else deferred,
    )
