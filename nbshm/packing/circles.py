"""Circles: definitions each of which must stand before another, and how one of them does with less."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from nbshm.definitions.lifting import Lifted
from nbshm.packing.draft import Draft
from nbshm.packing.knowledge import Knowledge, LearntError

CONTAINERS = (list, dict, set)  # what can be there empty and be filled later


class Stack:
    """The definitions in progress: each is written down because the one before it needs it first."""

    def __init__(self, knowledge: Knowledge, draft: Draft) -> None:
        self._knowledge = knowledge
        self._draft = draft
        self._names: list[str] = []
        self._asking: str | None = None

    def __contains__(self, name: object) -> bool:
        return name in self._names

    @contextmanager
    def defining(self, name: str) -> Iterator[None]:
        """Write a definition down meanwhile; one that is in progress already closes a circle."""
        if name in self._names:
            self._break_circle(name)
        self._names.append(name)
        yield
        self._names.pop()

    @contextmanager
    def asked_by(self, value: str) -> Iterator[None]:
        """Pickle the live value of that name meanwhile: whatever is asked for, it is this that asks."""
        self._asking = value
        yield
        self._asking = None

    def ask_for(self, definition: Lifted) -> None:
        """Note that what is being pickled refers to a definition, which must stand before it."""
        name = definition.name
        if name in self._draft.defined:
            return
        self._knowledge.users.setdefault(name, "a value")
        if self._names:
            self._knowledge.note_edge(name, before=self._names[-1], asking=self._asking)
        if name in self._names:
            self._break_circle(name)
        raise LearntError

    def _break_circle(self, name: str) -> NoReturn:
        """Let one of the definitions that lead from `name` back to it do with less; the next pass knows."""
        circle = self._names[self._names.index(name) :]
        edges = self._knowledge.edges
        asking = {
            one: edges.get(one, {}).get(other) for one, other in zip(circle, [*circle[1:], name], strict=True)
        }
        for one, key in asking.items():
            if key is not None and self._can_wait(one, key):
                del edges[one]
                raise LearntError
        self._knowledge.by_value.add(
            next((one for one, key in asking.items() if key is not None), circle[-1])
        )
        raise LearntError

    def _can_wait(self, name: str, key: str) -> bool:
        """Have a live value given later, if it can be; so can what a container holds that has to be there."""
        definition = self._knowledge.definition(name)
        if definition is not None and key in definition.deferrable:
            self._knowledge.deferred.add(key)
        elif type(self._knowledge.namespace.get(key)) in CONTAINERS:
            self._knowledge.emptied.add(key)
        else:
            return False
        return True
