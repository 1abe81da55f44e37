"""The text of a body, put where its cell has it and compiled under the cell's name."""

# IPython is typed in part:
# mypy: allow-untyped-calls

from __future__ import annotations

from IPython.core.compilerop import CachingCompiler
from IPython.core.inputtransformer2 import cell_magic

from nbshm.jobs import Body


def at_its_line(body: Body) -> str:
    """Return the body below comments that stand for the lines above it: its lines count as in the cell.

    A cell magic in the body's first line becomes the call that IPython makes of one at the top of a cell.
    """
    above = body.cell.split("\n")[: body.origin.line - 1]
    above += [""] * (body.origin.line - 1 - len(above))
    lines = _without_cell_magic(body.source.splitlines(keepends=True))
    # IPython takes away what indents the first line: the comments must not hide that a body is indented.
    indent = _indent(lines)
    return "".join(f"{indent}# {line}".rstrip() + "\n" for line in above) + "".join(lines)


def _without_cell_magic(lines: list[str]) -> list[str]:
    blank = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    rest: list[str] = cell_magic(lines[blank:])
    return lines[:blank] + rest


def _indent(lines: list[str]) -> str:
    first = next((line for line in lines if line.strip()), "")
    return first[: len(first) - len(first.lstrip())]


class CellCompiler(CachingCompiler):
    """Compiles a body under the name of the notebook's cell, and calls cells by numbers in tracebacks."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: dict[str, int] = {}
        self._names: dict[str, str] = {}

    def name(self, text: str, filename: str) -> None:
        """Have a text compiled under that file name from now on."""
        self._names[text] = filename

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        """Return the name that the text was given, else IPython's own."""
        given = self._names.get(raw_code)
        return super().get_code_name(raw_code, transformed_code, number) if given is None else given

    def format_code_name(self, name: str) -> tuple[str, str] | None:
        """Say `Cell In[3]` for the name of a cell, as the notebook says it."""
        if name in self.cells:
            return "Cell", f"In[{self.cells[name]}]"
        return super().format_code_name(name)
