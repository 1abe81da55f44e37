"""What a parallel cell needs from the notebook, from its text alone; refused here is what can't be right."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any

from nbshm.definitions.escapes import write_out
from nbshm.definitions.names import Names, cell_names
from nbshm.definitions.statements import POSTPONED
from nbshm.definitions.writes import Write, writes
from nbshm.given_names import GIVEN_NAMES
from nbshm.jobs import Body
from nbshm.notebook.syntax_errors import raised_for_cells
from nbshm.options import OptionError, Options
from nbshm.packing import Needs
from nbshm.worker.cells import at_its_line

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_HISTORIES = frozenset({"Out", "_oh"})

_SEEDING = frozenset({"advance", "jumped", "manual_seed", "seed", "spawn"})
"""What a cell calls to give each rank a stream of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What a cell needs, its writes into the notebook's values, and names that it binds in its ranks only.

    `seeded` is what it seeds, spawns from, or binds anew, as its code calls that: `rng`, `opts['rng']`.
    `spawned_alike` is what each rank spawns the same from: `seeds` in `seeds.spawn(1)`.
    `texts` are its string constants, which may be code too: a formula, a query.
    """

    needs: Needs
    writes: tuple[Write, ...] = ()
    binds: frozenset[str] = frozenset()
    seeded: frozenset[str] = frozenset()
    spawned_alike: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ()


def analyse(body: Body, shell: InteractiveShell, options: Options) -> Analysis:
    """Return what the cell needs and writes.

    Raises
    ------
    SyntaxError
        The cell does not compile; the error names its own lines.
    OptionError
        `out=` or `send=` name what is not there.

    """
    flags = shell.compile.flags
    tree = _parsed(body, shell, flags)
    names = cell_names(tree, postponed=bool(flags & POSTPONED))
    _check_options(names, options, shell.user_ns)
    wanted = {name: f"line {line} of this cell" for name, line in names.lines.items()}
    wanted |= dict.fromkeys(names.annotated - wanted.keys(), "an annotation of this cell")
    wanted |= dict.fromkeys(options.send, "send=")
    needs = Needs(
        names={name: user for name, user in wanted.items() if name not in GIVEN_NAMES},
        attributes=names.attributes,
        optional=(names.perhaps_bound | (names.annotated - names.reads)) - set(options.send),
        extra=_history(tree, shell.user_ns),
    )
    written_out = write_out(tree)
    return Analysis(
        needs=needs,
        writes=tuple(_writes_into_the_notebook(written_out, names, options.out)),
        binds=names.binds - set(options.out),
        seeded=frozenset(_seeded(written_out)),
        spawned_alike=frozenset(ast.unparse(method.value) for method in _spawning_alike(written_out)),
        texts=tuple(_texts(written_out)),
    )


def _writes_into_the_notebook(tree: ast.Module, names: Names, out: Iterable[str]) -> Iterator[Write]:
    """Return the writes into what was there before the cell, and does not come back."""
    given = _names_in_the_result(tree)
    own = names.reads - names.binds - given
    added_to = names.reads - names.perhaps_bound - given - set(out)
    return (write for write in writes(tree) if write.name in (added_to if write.binds else own))


def _seeded(tree: ast.Module) -> Iterator[str]:
    """Yield what the cell uses a method of that gives a stream of random numbers, and what it binds anew."""
    alike = set(map(id, _spawning_alike(tree)))
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=method, value=generator) if method in _SEEDING and id(node) not in alike:
                yield from map(ast.unparse, _with_owners(generator))
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                yield ast.unparse(node)


def _with_owners(generator: ast.expr) -> Iterator[ast.expr]:
    """Yield the code of a generator, and that of those whose bits it makes: `rng` of `rng.bit_generator`."""
    yield generator
    while isinstance(generator, ast.Attribute) and generator.attr in {"bit_generator", "seed_seq"}:
        generator = generator.value
        yield generator


def _spawning_alike(tree: ast.Module) -> Iterator[ast.Attribute]:
    """Yield the methods by which each rank spawns the same: `x.spawn(1)`, `x.spawn(nprocs)[0]`."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Call(func=ast.Attribute(attr="spawn") as method, args=[ast.Constant(value=1)])
                | ast.Subscript(
                    value=ast.Call(func=ast.Attribute(attr="spawn") as method), slice=ast.Constant()
                )
            ):
                yield method


def _texts(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _names_in_the_result(tree: ast.Module) -> set[str]:
    """Return the names that are the cell's last expression, or among what it lists: these come back."""
    match tree.body:
        case [*_, ast.Expr(value=ast.Tuple(elts=values) | ast.List(elts=values) | ast.Dict(values=values))]:
            pass
        case [*_, ast.Expr(value=value)]:
            values = [value]
        case _:
            values = []
    return {value.id for value in values if isinstance(value, ast.Name)}


def _parsed(body: Body, shell: InteractiveShell, flags: int) -> ast.Module:
    text = at_its_line(body)
    with raised_for_cells(text, body.origin.filename):
        text = shell.transform_cell(text)  # type: ignore[no-untyped-call]
    flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with raised_for_cells(text, body.origin.filename):
        compiled: CodeType = compile(text, body.origin.filename, "exec", flags, dont_inherit=True)
        del compiled  # only compiling finds a `return` outside a function, and its like
    tree: ast.Module = ast.parse(text, body.origin.filename)
    return tree


def _check_options(names: Names, options: Options, namespace: Mapping[str, Any]) -> None:
    for name in options.send:
        if name not in namespace:
            raise OptionError(f"send={name}: the notebook has no name {name!r}.")
    for name in options.out:
        if name not in names.binds and not names.star_imports:
            problem = f"out={name}: the cell never binds {name!r}."
            instead = f"end the cell in {name}" if name in names.reads else "leave it out"
            raise OptionError(f"{problem} Assign it in the cell, or {instead}.")


def _history(tree: ast.Module, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of earlier cells that the cell asks for by number, and no others."""
    results = namespace.get("_oh", {})
    numbers = set(_history_numbers(tree)) & results.keys()
    kept = {number: results[number] for number in numbers}
    return dict.fromkeys(_HISTORIES, kept) if kept else {}


def _history_numbers(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as number)):
                if name in _HISTORIES:
                    yield number
            case _:
                pass
