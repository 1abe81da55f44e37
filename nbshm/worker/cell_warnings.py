"""Warnings from cells, located by cell number.

A cell's code has a file name with the kernel's process id in it: no two runs would be saved alike.
"""

from __future__ import annotations

import contextlib
import linecache
import warnings
from collections.abc import Iterator, Mapping

from nbshm.replacing import replaced


@contextlib.contextmanager
def cells_by_number(cells: Mapping[str, int]) -> Iterator[None]:
    """Have warnings say `Cell In[3]:5` for a line of a cell, while this is entered."""
    before = warnings.formatwarning

    def format_warning(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        if filename not in cells:
            return before(message, category, filename, lineno, line)
        text = linecache.getline(filename, lineno) if line is None else line
        return before(message, category, f"Cell In[{cells[filename]}]", lineno, text)

    with replaced(warnings, "formatwarning", format_warning):  # documented as replaceable
        yield
