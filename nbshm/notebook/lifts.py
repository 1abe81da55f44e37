"""What has been lifted before: a definition that is as it was is not taken apart again.

Finding and reading a definition's source takes a millisecond or more, and each process of a pool, each run
needs all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from nbshm.definitions.lifting import Lifted, lift
from nbshm.definitions.live_values import raw_function
from nbshm.definitions.states import attributes_of_members
from nbshm.own_definitions import is_notebooks


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A lifted definition, and what it was made from: its parts, and the globals that were looked up."""

    parts: list[Any]
    globals: dict[str, Any]
    lifted: Lifted

    def holds(self, definition: Any, namespace: Mapping[str, Any]) -> bool:
        parts = list(_parts(definition))
        return (
            len(parts) == len(self.parts)
            and all(one is other for one, other in zip(parts, self.parts, strict=True))
            and all(namespace.get(name, _NOTHING) is value for name, value in self.globals.items())
        )


class Lifts:
    """The definitions of one notebook, lifted when they are first asked for and when they have changed.

    Those with live values are lifted each time: what they hold must not be kept alive here.
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def lift(
        self, name: str, definition: Any, namespace: Mapping[str, Any], cells: Mapping[str, int]
    ) -> Lifted | None:
        """Return what `lifting.lift` returns."""
        entry = self._entries.get(name)
        if entry is not None and entry.holds(definition, namespace):
            return entry.lifted
        self._entries.pop(name, None)
        seen = _Seen(namespace)
        lifted = lift(name, definition, seen, cells)
        if lifted is not None and _is_plain(definition, lifted):
            self._entries[name] = _Entry(
                parts=list(_parts(definition)), globals=seen.looked_up, lifted=lifted
            )
        return lifted


def _is_plain(definition: Any, lifted: Lifted) -> bool:
    state = lifted.state
    return isinstance(definition, (FunctionType, type)) and not (lifted.live or state.changed or state.added)


def _parts(definition: Any) -> Iterator[Any]:
    """Yield what a definition consists of; with the same objects it is the same."""
    yield definition
    if isinstance(definition, FunctionType):
        yield from (definition.__code__, definition.__defaults__, definition.__doc__)
        yield from _flat(definition.__kwdefaults__ or {})
        yield from _flat(vars(definition))
        if isinstance(wrapped := vars(definition).get("__wrapped__"), FunctionType):
            yield from _parts(wrapped)
    elif isinstance(definition, type):
        yield definition.__bases__
        for attribute in attributes_of_members(definition):
            yield from attribute
        for key, value in vars(definition).items():
            yield from (key, value)
            inner = value if isinstance(value, type) else raw_function(value)
            if inner is not None and is_notebooks(inner):
                yield from _parts(inner)


def _flat(mapping: Mapping[str, Any]) -> Iterator[Any]:
    for key, value in mapping.items():
        yield from (key, value)


class _Seen(Mapping[str, Any]):
    """A namespace that notes what is looked up in it."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self.looked_up: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        self.looked_up[name] = self._namespace.get(name, _NOTHING)
        return self._namespace[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._namespace)

    def __len__(self) -> int:
        return len(self._namespace)


_NOTHING = object()
