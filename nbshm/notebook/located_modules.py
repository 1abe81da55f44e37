"""Modules that were loaded from a file which importing their name would not find.

So they are where `importlib.util.spec_from_file_location` has made them, or where `sys.path` or the directory
has changed since.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import ExtensionFileLoader, ModuleSpec, SourceFileLoader

from nbshm.own_code import is_library, without_loading

_LOADERS = (SourceFileLoader, ExtensionFileLoader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a module's code is, and in which directories the modules of a package are; None of no package."""

    file: str
    directories: tuple[str, ...] | None


def located_modules() -> dict[str, Location]:
    """Return where those of the person's modules are that importing their names would not find there."""
    path = {os.path.abspath(directory) for directory in sys.path}  # noqa: PTH100  # strings are what modules have
    return {
        name: Location(file=spec.origin, directories=_directories(spec))
        for name, spec in _loaded()
        if spec.origin is not None and _place(spec) not in path and not is_library(spec.origin)
        if os.path.exists(spec.origin) and _found(name) != spec.origin  # noqa: PTH110  # likewise
    }


def _loaded() -> Iterator[tuple[str, ModuleSpec]]:
    """Return the modules that come from files; those in packages are found by these."""
    for name, module in list(sys.modules.items()):
        if "." not in name:
            spec = without_loading(module, "__spec__")
            if isinstance(spec, ModuleSpec) and type(spec.loader) in _LOADERS:
                yield name, spec


def _place(spec: ModuleSpec) -> str:
    """Return the directory in which a module lies, a package as a whole."""
    directory = os.path.dirname(spec.origin or "")  # noqa: PTH120  # as above
    return directory if spec.submodule_search_locations is None else os.path.dirname(directory)  # noqa: PTH120  # likewise


def _directories(spec: ModuleSpec) -> tuple[str, ...] | None:
    found = spec.submodule_search_locations
    return None if found is None else tuple(found)


def _found(name: str) -> str | None:
    """Return the file that an import finds, if nothing has been imported by that name."""
    for finder in sys.meta_path:
        spec = finder.find_spec(name, None)
        if spec is not None:
            return spec.origin
    return None
