"""Where imports in this process find modules, as directories that mean the same in another process.

An entry of `sys.path` may be relative. The empty one is the working directory of the moment; any other is
looked up when something is first imported through it, and stays what it was then.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import FileFinder


def import_path() -> list[str]:
    """Return `sys.path` with absolute entries."""
    return [absolute(entry) for entry in sys.path]


def absolute(entry: str) -> str:
    """Return an entry of `sys.path` as the directory in which it finds modules."""
    if not isinstance(entry, str) or os.path.isabs(entry):  # noqa: PTH117  # strings are what is looked up there
        return entry
    finder = sys.path_importer_cache.get(entry)
    if isinstance(finder, FileFinder):
        return finder.path
    try:
        return os.path.abspath(entry)  # noqa: PTH100  # likewise
    except FileNotFoundError:  # the working directory was removed: it finds nothing
        return entry
