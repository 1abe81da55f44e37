"""What one pass has written down so far."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nbshm.definitions.lifting import Lifted
from nbshm.definitions.sources import is_cell
from nbshm.jobs import Cell, Define, Load
from nbshm.packing.imports import Imports


@dataclass(slots=True, kw_only=True)
class Draft:
    """A program in the making.

    `defined` and `loaded` names are bound by the steps so far; `late` values are bound after the last one,
    `contents` filled in then. `files` hold the code of functions that travel by value. `attributes` are what
    all code reads from anything: submodules may be among it.
    """

    imports: Imports = field(default_factory=Imports)
    steps: list[Define | Load] = field(default_factory=list)
    defined: dict[str, Lifted] = field(default_factory=dict)
    loaded: set[str] = field(default_factory=set)
    late: dict[str, Any] = field(default_factory=dict)
    contents: dict[str, Any] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)

    def cells(self, numbers: Mapping[str, int]) -> dict[str, Cell]:
        """Return the text of every cell that a definition or a function came from."""
        names = self.files | {definition.source.origin.filename for definition in self.defined.values()}
        texts = {name: "".join(linecache.getlines(name)) for name in names if is_cell(name)}
        return {name: Cell(text=text, number=numbers.get(name)) for name, text in texts.items()}
