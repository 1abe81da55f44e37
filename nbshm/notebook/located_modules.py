"""Modules that were loaded from where importing their name would not find them, and how others find them.

So they are where `importlib.util.spec_from_file_location` has made them, or where `sys.path` or the directory
has changed since.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec, SourceFileLoader
from types import ModuleType

from nbshm.import_path import import_path
from nbshm.own_code import is_library, without_loading

_LOADERS = (SourceFileLoader, ExtensionFileLoader)
_NAMESPACE_LOADERS = ("NamespaceLoader", "_NamespaceLoader")  # the latter before Python 3.11


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a module's code is, and in which directories the modules of a package are.

    `file` is None of a namespace package, `directories` of what is no package.
    """

    file: str | None
    directories: tuple[str, ...] | None

    @property
    def paths(self) -> tuple[str, ...]:
        """What is on disk of the module itself: its file, or the directories of a namespace package."""
        return (self.directories or ()) if self.file is None else (self.file,)

    @property
    def places(self) -> set[str]:
        """The directories in which the module lies, a package as a whole."""
        directories = {os.path.dirname(path) for path in self.paths}  # noqa: PTH120  # strings are what modules have
        if self.file is None or self.directories is None:
            return directories
        return {os.path.dirname(directory) for directory in directories}  # noqa: PTH120  # likewise


class LocationFinder(MetaPathFinder):
    """Finds modules where another process has loaded them from."""

    def __init__(self, locations: Mapping[str, Location]) -> None:
        self._locations = locations

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002  # the signature of finders
        target: ModuleType | None = None,  # noqa: ARG002  # likewise
    ) -> ModuleSpec | None:
        """Return how a module of that name is loaded, if the other process has loaded one in its own way."""
        location = self._locations.get(fullname)
        if location is None:
            return None
        directories = None if location.directories is None else list(location.directories)
        if location.file is None:
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = directories
            return spec
        return importlib.util.spec_from_file_location(
            fullname, location.file, submodule_search_locations=directories
        )


def located_modules() -> dict[str, Location]:
    """Return where those of the person's modules are that importing their names would not find there."""
    path = {os.path.normpath(entry) for entry in import_path() if isinstance(entry, str)}
    return {
        name: location
        for name, location in _loaded()
        if not location.places <= path and not all(map(is_library, location.paths))
        if all(map(os.path.exists, location.paths)) and _found(name) != location.paths
    }


def _loaded() -> Iterator[tuple[str, Location]]:
    """Return the modules that come from files; those in packages are found by these."""
    for name, module in list(sys.modules.items()):
        if "." not in name:
            location = _location(without_loading(module, "__spec__"))
            if location is not None:
                yield name, location


def _location(spec: object) -> Location | None:
    """Return where a module is of which this is the spec; None if it does not come from files."""
    if not isinstance(spec, ModuleSpec):
        return None
    found = spec.submodule_search_locations
    directories = None if found is None else tuple(found)
    if spec.origin is not None and type(spec.loader) in _LOADERS:
        return Location(file=spec.origin, directories=directories)
    is_namespace = spec.loader is None or type(spec.loader).__name__ in _NAMESPACE_LOADERS
    return Location(file=None, directories=directories) if directories and is_namespace else None


def _found(name: str) -> tuple[str, ...]:
    """Return the paths at which an import finds a module in a process that has none by that name yet."""
    for finder in sys.meta_path:
        spec = None if isinstance(finder, LocationFinder) else finder.find_spec(name, None)
        if spec is not None:
            return tuple(spec.submodule_search_locations or ()) if spec.origin is None else (spec.origin,)
    return ()
