"""What one pass hands to the next: names, definitions, and which of them has to do with less."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from nbshm.definitions.lifting import Lifted
from nbshm.definitions.names import name_lines
from nbshm.definitions.sources import home
from nbshm.jobs import LeftOut
from nbshm.notebook.namespace import Notebook
from nbshm.packing.needs import Needs
from nbshm.words import line_in_words


class LearntError(Exception):
    """A pass has learnt something that the next one must know from its start."""


@dataclass(slots=True, kw_only=True)
class Knowledge:
    """The names that are needed with who uses them, and what has been found out about each.

    `edges` say which definition must stand before which other, with the live value that asks for it, if one
    does. `deferred` live values are set after the last definition, `emptied` containers filled then.
    `by_value` definitions are not lifted. `dropped` names are left out, with the reason.
    """

    notebook: Notebook
    needs: Needs
    users: dict[str, str] = field(default_factory=dict)
    optional: set[str] = field(default_factory=set)
    dropped: dict[str, LeftOut] = field(default_factory=dict)
    edges: dict[str, dict[str, str | None]] = field(default_factory=dict)
    deferred: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)
    by_value: set[str] = field(default_factory=set)
    lifted: dict[str, Lifted | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.users.update(self.needs.names)
        self.optional.update(self.needs.optional)
        self.dropped.update(self.notebook.left_out)

    @property
    def namespace(self) -> dict[str, Any]:
        """The notebook's globals."""
        return self.notebook.namespace

    @property
    def names(self) -> frozenset[str]:
        """The notebook's names that are sent."""
        return frozenset(self.users) & self.namespace.keys() - self.dropped.keys()

    def definition(self, name: str) -> Lifted | None:
        """Return the definition that a global name can be lifted as."""
        if name in self.by_value or name in self.dropped or name not in self.namespace:
            return None
        if name not in self.lifted:
            self.lifted[name] = self._lift(name)
        return self.lifted[name]

    def _lift(self, name: str) -> Lifted | None:
        value = self.namespace[name]
        if home(value) != ("__main__", name):
            return None
        return self.notebook.lifts.lift(name, value, self.namespace, self.notebook.cells)

    def note_definition(self, definition: Lifted) -> None:
        """Note the names that a definition reads; what only its annotations name may be left out."""
        for name in definition.late | definition.early:
            self.users.setdefault(name, definition.use(name))
        for name in definition.hints - self.users.keys():
            self.users[name] = definition.use(name)
            self.optional.add(name)

    def note_function(self, function: FunctionType) -> None:
        """Note the names that a function reads which travels by value."""
        cell = self.notebook.cells.get(function.__code__.co_filename)
        for name, line in name_lines(function.__code__).items():
            if self.notebook.has(name):
                self.users.setdefault(name, f"{function.__qualname__}, {line_in_words(line, cell)}")

    def note_edge(self, definition: str, *, before: str, asking: str | None) -> None:
        """Note that a definition must stand before another, whose live value `asking` refers to it."""
        self.edges.setdefault(before, {})[definition] = asking

    def fingerprint(self) -> tuple[object, ...]:
        """Return what differs from all that were before when something has been learnt."""
        edges = frozenset((one, *edge) for one, names in self.edges.items() for edge in names.items())
        facts = (self.users, self.optional, self.dropped, self.by_value, self.deferred, self.emptied)
        return (*map(len, facts), edges)

    def may_be_left_out(self, name: str) -> bool:
        """Tell whether the code can do without the name."""
        return self.needs.all_optional or name in self.optional

    def leave_out(self, name: str, sentence: str) -> None:
        """Do without a name from now on; the sentence tells why to who uses it."""
        is_class = isinstance(self.namespace.get(name), type)
        self.dropped[name] = LeftOut(sentence=sentence, is_class=is_class)
