"""Where each definition of the notebook came from: its statement in a cell, found and checked.

IPython keeps the text of each cell in `linecache`, under the file name that the cell's code was compiled
with, and keeps that of cells that were edited and run again as well. So a name says little: what decides is
whether the statement, compiled anew, gives the very code that the live object runs. A class has no code of
its own, but its methods have; one without methods is compared with what its statement says (`evidence.py`).
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, MappingProxyType
from typing import Any, Generic, TypeVar

from nbshm.attributes import attribute
from nbshm.definitions import evidence
from nbshm.definitions.bindings import Function
from nbshm.definitions.statements import (
    POSTPONED,
    Definition,
    compiled_code,
    definitions,
    first_line,
    parsed,
    placed_statement,
    statement_text,
)
from nbshm.jobs import Origin
from nbshm.own_definitions import is_notebooks

_FUNCTIONS: tuple[type[Function], ...] = (ast.FunctionDef, ast.AsyncFunctionDef)
_NO_CELLS: Mapping[str, int] = MappingProxyType({})

# Each layer is a call when the function runs, so more than this no chain of decorators has.
_MAX_LAYERS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A definition's statement as the person wrote it, and its place.

    `text` is the whole statement with its decorators, moved to the left margin: its first line is line
    `origin.line` of the cell, where it stood `column` characters to the right. `postponed` tells whether
    annotations were left unevaluated.
    """

    text: str
    origin: Origin
    column: int
    postponed: bool


def find_source(definition: Any, *, cells: Mapping[str, int] = _NO_CELLS) -> Source | None:
    """Find the statement at the top level of a cell that made this function or class.

    None if there is no such statement: for lambdas, closures, code made by `exec`, the product of a decorator
    that doesn't lead to what it wraps, or a class that has no statement which agrees with it.

    `cells` maps the file names of the notebook's cells to their execution counts; without it, all that
    `linecache` holds without a file counts as a cell.
    """
    if isinstance(definition, type):
        return _class_source(definition, cells)
    return _function_source(definition, cells)


def definition_statement(source: Source) -> ast.stmt:
    """Return the statement with the lines and columns it has in its cell, to be compiled under that name."""
    return placed_statement(source.text, line=source.origin.line, column=source.column)


_D = TypeVar("_D", bound=Definition)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found(Generic[_D]):
    """A statement in the text of a file that `linecache` holds."""

    filename: str
    text: str
    statement: _D

    def holds(self, codes: Iterable[CodeType]) -> bool:
        """Tell whether the statement compiles to code that contains all of `codes`."""
        wanted = frozenset(codes)
        flags = next(iter(wanted)).co_flags if wanted else 0
        return wanted <= compiled_code(self.statement, filename=self.filename, flags=flags)


def _function_source(definition: Any, cells: Mapping[str, int]) -> Source | None:
    for depth, layer in enumerate(_layers(definition)):
        found = _found_function(layer) if isinstance(layer, FunctionType) else None
        if found is None:
            continue
        statement = found.statement
        # With more layers than decorators, something was wrapped around the function after its statement.
        if statement.name != home(definition)[1] or depth > len(statement.decorator_list):
            return None
        return _source(found, cells, postponed=_is_postponed(layer.__code__))
    return None


def _layers(definition: Any) -> Iterator[Any]:
    """Yield the object and, as far as it leads to that, what it was made of."""
    for _ in range(_MAX_LAYERS):
        yield definition
        definition = wrapped(definition)
        if not callable(definition):
            return


def wrapped(definition: Any) -> Any:
    """Return what a decorator has wrapped; `torch.jit.script` keeps it under a name of its own."""
    inner = attribute(definition, "__wrapped__")
    return attribute(definition, "_torchdynamo_inline") if inner is None else inner


def home(definition: Any) -> tuple[str | None, str | None]:
    """Return the module and the qualified name that a function, class or decorated object goes by."""
    inner = definition if is_notebooks(definition) else wrapped(definition)
    module, name = attribute(inner, "__module__"), attribute(inner, "__qualname__")
    return (module, name) if isinstance(module, str) and isinstance(name, str) else (None, None)


def name_in_notebook(definition: Any) -> str | None:
    """Return the qualified name that a definition of the notebook goes by; None of what is not one."""
    module, name = home(definition)
    return name if module == "__main__" or is_notebooks(definition) else None


def _found_function(function: FunctionType) -> _Found[Function] | None:
    code = function.__code__
    for found in _statements(code.co_filename, code.co_name, _FUNCTIONS):
        if first_line(found.statement) == code.co_firstlineno and found.holds([code]):
            return found
    return None


def _class_source(definition: type, cells: Mapping[str, int]) -> Source | None:
    codes = [function.__code__ for function in evidence.own_functions(definition)]
    found = _proven(definition, codes) if codes else _likeliest(definition, cells)
    if found is None:
        return None
    if codes:
        postponed = any(_is_postponed(code) for code in codes if code.co_filename == found.filename)
    else:
        postponed = evidence.annotations_are_postponed(definition, found.statement)
    return _source(found, cells, postponed=postponed)


def _proven(definition: type, codes: Sequence[CodeType]) -> _Found[ast.ClassDef] | None:
    """Return the statement that the methods of the class come from."""
    for filename in dict.fromkeys(code.co_filename for code in codes):
        for found in _statements(filename, definition.__qualname__, (ast.ClassDef,)):
            if found.holds(code for code in codes if code.co_filename == filename):
                return found
    return None


def _likeliest(definition: type, cells: Mapping[str, int]) -> _Found[ast.ClassDef] | None:
    """Return the newest of the statements that agree best with a class without methods."""
    newest_first = (
        sorted(cells, key=lambda filename: cells[filename], reverse=True) if cells else _all_cells()
    )
    candidates = [
        found
        for filename in newest_first
        for found in _statements(filename, definition.__qualname__, (ast.ClassDef,))
        if not evidence.contradicts(definition, found.statement)
    ]
    return min(candidates, key=lambda found: evidence.doubts(definition, found.statement), default=None)


def _all_cells() -> list[str]:
    """Return the names under which `linecache` holds text that is in no file, the newest first."""
    return [filename for filename in reversed(linecache.cache) if is_cell(filename)]


def is_cell(filename: str) -> bool:
    """Tell whether `linecache` alone knows the text, which no file holds."""
    entry = linecache.cache.get(filename)
    if entry is None or len(entry) == 1:  # the text is read when it is asked for
        return False
    return entry[1] is None or filename in getattr(linecache, "_ipython_cache", ())  # before IPython 8.6


def _statements(filename: str, name: str, kinds: tuple[type[_D], ...]) -> list[_Found[_D]]:
    """Return the definitions of that name in the text of a file, the last one first."""
    text = "".join(linecache.getlines(filename))
    if not re.search(rf"\b(?:def|class)\s+{re.escape(name)}\b", text):
        return []
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError):  # the file has changed, or isn't Python
        return []
    found = [each for each in definitions(tree) if each.name == name and isinstance(each, kinds)]
    found.sort(key=first_line, reverse=True)
    return [_Found(filename=filename, text=text, statement=each) for each in found]


def _source(found: _Found[_D], cells: Mapping[str, int], *, postponed: bool) -> Source:
    statement = found.statement
    text, line = statement_text(found.text, statement)
    return Source(
        text=text,
        origin=Origin(filename=found.filename, line=line, cell=cells.get(found.filename)),
        column=statement.col_offset,
        postponed=postponed,
    )


def _is_postponed(code: CodeType) -> bool:
    return bool(code.co_flags & POSTPONED)
