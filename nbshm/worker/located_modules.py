"""Modules that are where nobody looks for them, found in a worker."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from nbshm.notebook.located_modules import Location


class LocationFinder(MetaPathFinder):
    """Finds modules in the files that the notebook has loaded them from."""

    def __init__(self, locations: Mapping[str, Location]) -> None:
        self._locations = locations

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002  # the signature of finders
        target: ModuleType | None = None,  # noqa: ARG002  # likewise
    ) -> ModuleSpec | None:
        """Return how a module of that name is loaded, if the notebook has loaded one in its own way."""
        location = self._locations.get(fullname)
        if location is None:
            return None
        directories = None if location.directories is None else list(location.directories)
        return importlib.util.spec_from_file_location(
            fullname, location.file, submodule_search_locations=directories
        )
