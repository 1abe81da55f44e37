"""The execution counts of cells, by the file names that their code was compiled under."""

from __future__ import annotations

import contextlib
import linecache
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class CellNumbers(Mapping[str, int]):
    """The numbers as the shell's compiler knows them."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._compiler: Any = shell.compile

    def __getitem__(self, filename: str) -> int:
        label, name = self._compiler.format_code_name(filename) or ("", "")
        if label != "Cell":
            raise KeyError(filename)
        return int(name.removeprefix("In[").removesuffix("]"))

    def __iter__(self) -> Iterator[str]:
        return (name for name in list(linecache.cache) if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class NotedNumbers(CellNumbers):
    """The numbers before IPython 8.7, whose compiler does not tell them.

    But it gives the same text the same name again. Of cells that ran before, the history has the text,
    without newlines at the end.
    """

    def __init__(self, shell: Any) -> None:  # a type checker has a newer one
        super().__init__(shell)
        self._shell = shell
        self._numbers: dict[str, int] = {}
        history = shell.history_manager
        for number, texts in enumerate(zip(history.input_hist_raw, history.input_hist_parsed, strict=False)):
            self._note(*texts, number)

    def __getitem__(self, filename: str) -> int:
        return self._numbers[filename]

    def note_next(self, info: Any) -> None:
        """Note the cell that is about to run."""
        if info.store_history:
            with contextlib.suppress(SyntaxError):  # told by IPython; such a cell has no code
                transformed = self._shell.transform_cell(info.raw_cell)
                self._note(info.raw_cell, transformed, self._shell.execution_count)

    def _note(self, text: str, transformed: str, number: int) -> None:
        self._numbers[self._compiler.get_code_name(text, transformed, number)] = number


def cell_numbers(shell: InteractiveShell, closing: ExitStack) -> CellNumbers:
    """Return the numbers of a shell's cells, to which later ones are added until the stack is closed."""
    if hasattr(shell.compile, "format_code_name"):
        return CellNumbers(shell)
    numbers = NotedNumbers(shell)
    shell.events.register("pre_run_cell", numbers.note_next)
    closing.callback(shell.events.unregister, "pre_run_cell", numbers.note_next)
    return numbers
