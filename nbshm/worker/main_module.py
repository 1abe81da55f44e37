"""Building `__main__` in a worker from a program: imports, the notebook's definitions, its values.

One namespace: the module is registered as `__main__` and as `__mp_main__` before anything runs in it, so
functions that are defined here, functions that travel by value and pickles by reference all meet in the same
globals. Each definition is compiled under the file name and line numbers that it has in the notebook, and
`linecache` is given the text of its cell: tracebacks, `inspect` and debuggers show what they would show
there.
"""

from __future__ import annotations

import ast
import enum
import functools
import importlib
import linecache
import sys
from collections.abc import Callable, Mapping
from types import CodeType, ModuleType
from typing import Any

from nbshm.definitions import live
from nbshm.definitions.sources import home
from nbshm.definitions.statements import POSTPONED, placed_statement
from nbshm.jobs import Cell, Define, Import, Load, Program, State, Step, Tail
from nbshm.worker.stand_ins import stand_in, unknown

_STAND_IN = "__nbshm_live_values__"


def new_main_module() -> ModuleType:
    """Make an empty module and let it be this process's `__main__`."""
    module = ModuleType("__main__", "The notebook's definitions, as a worker knows them.")
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    return module


def _nothing_may_fail(_: Step, error: Exception) -> None:
    raise error


def build(
    module: ModuleType,
    program: Program,
    load: Callable[[], Any],
    failed: Callable[[Step, Exception], None] = _nothing_may_fail,
) -> dict[str, Any]:
    """Run a program in the module; `load()` gives the next value of its stream.

    `failed` is told of an import or a definition that raises. Returns the notebook's definitions by name, as
    they are here.
    """
    namespace = vars(module)
    remember(program.cells)
    for step in program.steps:
        _take(step, namespace, load, failed)
    tail: Tail = load()
    namespace.update(tail.values)
    for name, contents in tail.contents.items():
        _refill(namespace[name], contents)
    for name, state in tail.state.items():
        _set_state(namespace[name], state)
    return {name: value for name, value in namespace.items() if _is_definition(value, name)}


def build_what_can_be(module: ModuleType, program: Program, load: Callable[[], Any]) -> None:
    """Run a program in the module; what can't be had here is stood in for by what says so."""
    namespace = vars(module)

    def failed(step: Step, error: Exception) -> None:
        if step.name is not None:
            sentence = f"{step.name!r} could not be made in this process: {type(error).__name__}: {error}."
            namespace[step.name] = stand_in(sentence, is_class=_makes_class(step))

    try:
        build(module, program, load, failed)
    except Exception as error:  # noqa: BLE001  # a value's own unpickling may raise anything
        for step in program.steps:
            if step.name not in namespace:
                failed(step, error)
    for name, left_out in program.left_out.items():
        namespace[name] = stand_in(left_out.sentence, is_class=left_out.is_class)
    namespace["__getattr__"] = unknown


def _makes_class(step: Step) -> bool:
    if not isinstance(step, Define):
        return False
    statement = placed_statement(step.text, line=step.origin.line, column=step.column)
    return isinstance(statement, ast.ClassDef)


def _is_definition(value: Any, name: str) -> bool:
    return home(value) == ("__main__", name)


def remember(cells: Mapping[str, Cell]) -> None:
    """Let `linecache` know the texts of cells (a time of None: never looked for on disk)."""
    for filename, cell in cells.items():
        linecache.cache[filename] = (len(cell.text), None, cell.text.splitlines(keepends=True), filename)


def _take(
    step: Step, namespace: dict[str, Any], load: Callable[[], Any], failed: Callable[[Step, Exception], None]
) -> None:
    match step:
        case Import():
            try:
                _import(step, namespace)
            except Exception as error:  # noqa: BLE001  # so may the person's own modules
                failed(step, error)
        case Load(name=name):
            namespace[name] = load()
        case Define():
            values = {key: load() for key in step.live}
            try:
                _define(step, namespace, values)
            except Exception as error:  # noqa: BLE001  # the notebook's own code may raise anything
                failed(step, error)


def _import(step: Import, namespace: dict[str, Any]) -> None:
    imported = importlib.import_module(step.module)
    if step.name is not None:
        namespace[step.name] = imported if step.attribute is None else getattr(imported, step.attribute)


def _define(step: Define, namespace: dict[str, Any], values: dict[str, Any]) -> None:
    """Run a `def` or `class` statement, with live values in the place of what is not evaluated again."""
    namespace[_STAND_IN] = values
    try:
        exec(compiled(step), namespace)  # noqa: S102  # the notebook's own source
    finally:
        del namespace[_STAND_IN]


def compiled(step: Define) -> CodeType:
    """Compile a statement so that its code names the line of the cell that it came from."""
    statement = placed_statement(step.text, line=step.origin.line, column=step.column)
    blanks: dict[str, ast.expr] = {key: ast.Constant(None) for key in step.blank}
    live.replace(statement, blanks | {key: _stand_in(key) for key in step.live})
    tree = ast.Module(body=[statement], type_ignores=[])
    flags = POSTPONED if step.postponed else 0
    code: CodeType = compile(tree, step.origin.filename, "exec", flags, dont_inherit=True)
    return code


def _stand_in(key: str) -> ast.expr:
    return ast.Subscript(value=ast.Name(_STAND_IN, ast.Load()), slice=ast.Constant(key), ctx=ast.Load())


def _set_state(definition: Any, state: State) -> None:
    for path, value in state.changed.items():
        *outer, name = path.split(".")
        _set_attribute(functools.reduce(_part, outer, definition), name, value)
    for name, value in state.added.items():
        if name not in vars(definition):
            setattr(definition, name, value)
    for name in state.removed:
        if name in vars(definition):
            delattr(definition, name)
    for subclass in state.registered:
        definition.register(subclass)


def _part(kind: Any, name: str) -> Any:
    """Return a method of a class, a class in it, or a member of an enum."""
    is_member = isinstance(kind, enum.EnumMeta) and name in kind.__members__
    return kind[name] if is_member else vars(kind)[name]


def _set_attribute(holder: Any, name: str, value: Any) -> None:
    if isinstance(type(holder), enum.EnumMeta):
        vars(holder)[name] = value  # a member may let nobody set it
    else:
        setattr(holder, name, value)


def _refill(container: Any, contents: Any) -> None:
    """Give a list, dict or set the contents that it has in the notebook."""
    container.clear()
    container.extend(contents) if isinstance(container, list) else container.update(contents)
