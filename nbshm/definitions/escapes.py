"""Magics and shell escapes of a cell, written out as the code that they run and the names that they expand.

IPython turns `!echo {rank}` into `get_ipython().system('echo {rank}')` and `%time f(x)` into
`get_ipython().run_line_magic('time', 'f(x)')`, so that what they use hides in strings.
"""

from __future__ import annotations

import ast
import copy
import keyword
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass

# Magics that run code in the namespace of the cell, where it may bind names ...
_RUNNING = frozenset({"time", "prun"})
# ... and those that run it elsewhere, or look at it.
_LOOKING = frozenset(
    {"timeit", "memit", "mprun", "lprun", "pinfo", "pinfo2", "pdef", "pdoc", "psource", "pfile"}
)
# The shell's own magics expand names in their body too, the others in their first line only.
_SHELL = frozenset({"!", "sx", "system"})

_DOLLAR = re.compile(r"(?<!\$)\$([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_BRACES = re.compile(r"\{([^{}]*)\}")
# A line in IPython's own syntax, which in the body of a cell magic is still as the person wrote it.
_ESCAPED_LINE = re.compile(
    r"^(?P<start>[ \t]*(?:[\w.,\[\]'\"][\w.,\[\]'\" \t]*=[ \t]*)?)"  # nothing, or what it is assigned to
    r"(?P<mark>!!?|%(?!%))(?P<rest>.*)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Escape:
    """A magic with its line and body: `time`, ``, `f(x)`; a shell escape is the magic `!`."""

    name: str
    line: str
    body: str = ""


def write_out(tree: ast.Module) -> ast.Module:
    """Return the cell with the code in its escapes written out; the tree itself where there is none.

    That code stands before the statement that holds the escape, at the lines where the person wrote it.
    """
    if not any(isinstance(node, ast.Name) and node.id == "get_ipython" for node in ast.walk(tree)):
        return tree
    written = _Writer().visit(copy.deepcopy(tree))
    assert isinstance(written, ast.Module)  # noqa: S101  # a transformer keeps the kind of the root
    return written


class _Writer(ast.NodeTransformer):
    """Puts what an escape runs in front of the statement that holds the escape."""

    def visit_Expr(self, node: ast.Expr) -> list[ast.stmt]:
        return [*_code_inside(node), node]

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        return [*_code_inside(node), node]


def _code_inside(statement: ast.stmt) -> Iterator[ast.stmt]:
    for node in ast.walk(statement):
        escape = _recognise(node)
        if escape is not None:
            yield from (ast.increment_lineno(each, statement.lineno) for each in _code(escape))


def _recognise(node: ast.AST) -> Escape | None:
    """Return the escape that a call was written as, None for any other code.

    The calls are those that IPython's `core/inputtransformer2.py` writes.
    """
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython"), args=[]), attr=method),
            args=[*arguments],
        ):
            return _escape(
                method, [each.value if isinstance(each, ast.Constant) else None for each in arguments]
            )
    return None


def _escape(method: str, arguments: list[object]) -> Escape | None:
    match method, arguments:
        case (("system" | "getoutput"), [str(line)]):
            return Escape(name="!", line=line)
        case "run_line_magic", [str(name), str(line)]:
            return Escape(name=name, line=line)
        case "run_cell_magic", [str(name), str(line), str(body)]:
            return Escape(name=name, line=line, body=body)
    return None


def _code(escape: Escape) -> list[ast.stmt]:
    """Return what an escape runs, numbered so that line 0 is the line of the escape."""
    if escape.name == "capture":
        return [*_statements(escape.body), *_assignments(escape.line)]
    if escape.name in _RUNNING:
        return [*_argument(escape.line), *_statements(escape.body)]
    if escape.name in _LOOKING:
        # Nothing that is bound there is bound afterwards: to the flow it is code that may not run.
        block = [*_argument(escape.line), *_statements(escape.body)]
        return [_at_line_zero(ast.If(test=ast.Constant(value=False), body=block, orelse=[]))] if block else []
    return _expansions(escape.line) + (_expansions(escape.body) if escape.name in _SHELL else [])


def _statements(body: str) -> list[ast.stmt]:
    """Return the code in the body of a cell magic."""
    source = _transformed(body)
    try:
        return write_out(ast.parse(source)).body
    except (SyntaxError, ValueError):  # IPython may know what to make of it, so any word in it may be a name
        return _words(body)


def _argument(line: str) -> list[ast.stmt]:
    """Return the code in the line of a magic: what follows the options, which may have names for values."""
    names: list[ast.stmt] = []
    while line := line.strip():
        if not line.startswith("-"):
            try:
                return [*names, *(ast.increment_lineno(each, -1) for each in ast.parse(line).body)]
            except (SyntaxError, ValueError):  # begins with the value of an option
                names += _words(line.split()[0])
        line = line.partition(" ")[2]
    return names


def _assignments(line: str) -> list[ast.stmt]:
    """Return how `%%capture` binds the name in its line."""
    names = [word for word in line.split() if word.isidentifier()]
    return [ast.increment_lineno(each, -1) for name in names for each in ast.parse(f"{name} = None").body]


def _expansions(text: str) -> list[ast.stmt]:
    """Return the expressions that IPython evaluates in a text: `{rank + 1}`, `$name`, `{name:>5}`."""
    fields = (*_DOLLAR.findall(text), *_fields(text))
    return [ast.increment_lineno(each, -1) for field in fields for each in _expression(field)]


def _expression(field: str) -> list[ast.stmt]:
    try:
        return ast.parse(field.strip()).body
    except (SyntaxError, ValueError):  # not Python, so IPython leaves it alone: awk's `{print $1}`
        return []


def _fields(text: str) -> list[str]:
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError:  # a brace without its pair: nothing is expanded, but who knows what IPython tries
        return _BRACES.findall(text)
    specifications = [
        part for _, _, specification, _ in parsed if specification for part in _fields(specification)
    ]
    return [*(field for _, field, _, _ in parsed if field), *specifications]


def _words(text: str) -> list[ast.stmt]:
    words = re.findall(r"[A-Za-z_]\w*", text)
    names = [ast.Name(id=word, ctx=ast.Load()) for word in words if not keyword.iskeyword(word)]
    return [_at_line_zero(ast.Expr(value=name)) for name in names]


def _at_line_zero(statement: ast.stmt) -> ast.stmt:
    statement.lineno = statement.end_lineno = statement.col_offset = statement.end_col_offset = 0
    return ast.fix_missing_locations(statement)


def _transformed(body: str) -> str:
    """Write IPython's syntax in a body as calls, as far as it is one line long (IPython does all of it)."""
    first, _, rest = body.partition("\n")
    if first.startswith("%%"):
        name, _, line = first[2:].partition(" ")
        return f"get_ipython().run_cell_magic({name!r}, {line!r}, {rest!r})"
    return _ESCAPED_LINE.sub(_call, body)


def _call(escaped: re.Match[str]) -> str:
    start, mark, rest = escaped.group("start", "mark", "rest")
    if mark == "%":
        name, _, line = rest.partition(" ")
        return f"{start}get_ipython().run_line_magic({name!r}, {line!r})"
    return f"{start}get_ipython().system({rest!r})"
