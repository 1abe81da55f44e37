"""The `def` and `class` statements in a cell's text: found, cut out, compiled and put back at their place."""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import io
import operator
import tokenize
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import TypeAlias

from nbshm.definitions.bindings import Function
from nbshm.definitions.names import nested_code

Definition: TypeAlias = Function | ast.ClassDef

POSTPONED: int = __future__.annotations.compiler_flag
"""The compiler's flag for code whose annotations are not evaluated."""

# The flags of compiled code that say which future features were in force when it was compiled.
_FUTURE_FLAGS = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)

_IN_STRINGS = frozenset(
    getattr(tokenize, kind)
    for kind in ("STRING", "FSTRING_MIDDLE", "TSTRING_MIDDLE")
    if hasattr(tokenize, kind)
)

_TRIES = 10
"""How often to parse while another thread parses too, which Python before 3.13 answers with SystemError."""


def parse_statements(text: str) -> ast.Module:
    """Parse the text of a cell; it has been compiled before, so warnings about it have been shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(_TRIES):
            with contextlib.suppress(SystemError):
                return ast.parse(text)
        return ast.parse(text)


@functools.lru_cache(maxsize=64)
def parsed(text: str) -> ast.Module:
    """Return the tree of a text, which many ask for and nobody may change."""
    return parse_statements(text)


def definitions(tree: ast.Module) -> Iterator[Definition]:
    """Yield the definitions that a cell makes at its top level, also under `if`, `try`, `with` and loops."""
    blocks: list[ast.AST] = [tree]
    while blocks:
        for node in ast.iter_child_nodes(blocks.pop()):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield node
            elif isinstance(node, (ast.stmt, ast.excepthandler, ast.match_case)):
                blocks.append(node)


def compiled_code(statement: ast.stmt, *, filename: str, flags: int) -> frozenset[CodeType]:
    """Compile a statement and return all code objects in it; those of Python compare by what they hold.

    Equal are code objects with the same name, first line, instructions, constants and (since Python 3.12)
    positions. `flags` are a code object's `co_flags`.
    """
    module = ast.Module(body=[statement], type_ignores=[])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(module, filename, "exec", flags=flags & _FUTURE_FLAGS, dont_inherit=True)
    return frozenset(nested_code(code))


def first_line(definition: Definition) -> int:
    """Return the number that Python gives as the first line of the definition's code."""
    return definition.decorator_list[0].lineno if definition.decorator_list else definition.lineno


def statement_text(text: str, definition: Definition) -> tuple[str, int]:
    """Cut the lines of a definition out of its cell, and return them with the number of the first.

    They are moved to the left margin; strings that go over several lines keep what is in them.
    """
    lines = text.split("\n")
    first = first_line(definition)
    while definition.decorator_list and not lines[first - 1].lstrip().startswith("@"):
        first -= 1  # the decorator's expression may begin on a line below its `@`
    own_lines = lines[first - 1 : definition.end_lineno]
    return _moved_left(own_lines, definition.col_offset), first


def placed_statement(text: str, *, line: int, column: int) -> ast.stmt:
    """Parse the text of a definition as if it still stood at its place in the cell."""
    if column:
        text, line = "if True:\n" + _moved_right(text, column), line - 1
    (statement,) = parse_statements(text).body
    if column:
        assert isinstance(statement, ast.If)  # noqa: S101  # it was written one line above
        (statement,) = statement.body
    return ast.increment_lineno(statement, line - 1)


def _moved_left(lines: list[str], column: int) -> str:
    if not column:
        return "".join(f"{line}\n" for line in lines)
    inside = _lines_inside_strings("if True:\n" + "\n".join(lines) + "\n")
    return "".join(
        f"{line if number in inside else line[_indentation(line, column) :]}\n"
        for number, line in enumerate(lines, start=2)
    )


def _moved_right(text: str, column: int) -> str:
    inside = _lines_inside_strings(text)
    return "".join(
        f"{line}\n" if number in inside or not line.strip() else " " * column + f"{line}\n"
        for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1)
    )


def _indentation(line: str, column: int) -> int:
    """Return how many characters to take off: a line inside brackets may stand further to the left."""
    return min(column, len(line) - len(line.lstrip()))


def _lines_inside_strings(text: str) -> frozenset[int]:
    """Return the numbers of the lines that begin inside a string: their indentation belongs to it."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return frozenset(
        line
        for token in tokens
        if token.type in _IN_STRINGS
        for line in range(token.start[0] + 1, token.end[0] + 1)
    )
