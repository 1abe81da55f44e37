"""Modules of the person's own that were edited after the notebook imported them.

Workers import such files afresh, so they run what is on disk; the notebook runs what it has imported. That
is worth a line. Nothing remembers how old an import is, so each module's file is looked at when the module is
first seen, which is at the end of the cell that imported it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from nbshm.own_code import is_library

_NBSHM = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Import:
    """A module's file as it was imported. `spec` is another object after a reload."""

    spec: Any
    file: str
    changed: int


class LocalModules:
    """The modules that were imported from the person's own files, and how these were then.

    `reloaded(name)` tells the time of the file, in seconds, that something has brought the module up to in
    place, as `%autoreload` does; None where nothing has.
    """

    def __init__(self, reloaded: Callable[[str], float | None] = lambda _: None) -> None:
        self._reloaded = reloaded
        self._seen: set[str] = set()
        self._imports: dict[str, _Import] = {}

    def look(self) -> None:
        """Take in what has been imported, or reloaded, since the last look."""
        fresh = sys.modules.keys() - self._seen
        self._seen |= fresh
        for name in [*self._imports, *fresh]:
            module = sys.modules.get(name)
            known = self._imports.get(name)
            if module is not None and (known is None or known.spec is not _spec(module)):
                self._note(name, module)

    def edited(self, needed: Iterable[str]) -> list[str]:
        """Return the files behind the needed modules, and those that these use, that are newer now."""
        self.look()
        return sorted(
            known.file
            for name in _with_imports(set(needed), self._imports.keys())
            if (known := self._imports.get(name)) and self._is_edited(name, known)
        )

    def _is_edited(self, name: str, known: _Import) -> bool:
        changed = _changed(known.file)
        if changed in {None, known.changed}:
            return False
        return self._reloaded(name) != os.stat(known.file).st_mtime  # noqa: PTH116  # as below

    @property
    def names(self) -> frozenset[str]:
        """The names of the modules."""
        return frozenset(self._imports)

    def _note(self, name: str, module: ModuleType) -> None:
        if name.partition(".")[0] == _NBSHM:  # nbshm itself, where it is run from its repository
            return
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not is_library(file) and (changed := _changed(file)) is not None:
            self._imports[name] = _Import(spec=_spec(module), file=file, changed=changed)


def _spec(module: ModuleType) -> Any:
    return getattr(module, "__spec__", None)


def _changed(file: str) -> int | None:
    try:
        return os.stat(file).st_mtime_ns  # noqa: PTH116  # a string is what a module has
    except OSError:
        return None


def _with_imports(names: set[str], own: Iterable[str]) -> set[str]:
    """Add to the names of modules those of the person's own that these use, and so on."""
    own, found = set(own), set[str]()
    while names:
        name = names.pop()
        found.add(name)
        module = sys.modules.get(name)
        if name in own and module is not None:
            names |= (set(_used(module)) & own) - found
    return found


def _used(module: ModuleType) -> Iterator[str]:
    for value in list(vars(module).values()):
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(home, str):
            yield home
