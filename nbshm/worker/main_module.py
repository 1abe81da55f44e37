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
from contextlib import suppress
from types import CodeType, ModuleType
from typing import Any, TypeAlias

from nbshm.definitions import live
from nbshm.definitions.registers import enter
from nbshm.definitions.sources import name_in_notebook
from nbshm.definitions.statements import POSTPONED, placed_statement
from nbshm.failures.chains import safe_message
from nbshm.jobs import (
    Cell,
    Define,
    Enter,
    Import,
    Load,
    Program,
    Refill,
    Register,
    RemoveAttribute,
    SetAttribute,
    Step,
)
from nbshm.worker.stand_ins import stand_in, unknown
from nbshm.worker.value_stream import CannotRebuild

LoadNext: TypeAlias = Callable[[str], Any]
"""Returns the next value of a program's stream, or raises `CannotRebuild` of the label it is given."""

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
    load: LoadNext,
    failed: Callable[[Step, Exception], None] = _nothing_may_fail,
) -> dict[str, Any]:
    """Run a program in the module, with the values of its stream.

    `failed` is told of a step that raises. Returns the notebook's definitions by name, as they are here.
    """
    namespace = vars(module)
    remember(program.cells)
    for step in (*program.steps, *program.late):
        try:
            _take(step, namespace, load)
        except Exception as error:  # noqa: BLE001, PERF203  # code of the notebook and of modules raises what it likes
            failed(step, error)
    return {name: value for name, value in namespace.items() if _is_definition(value, name)}


def build_what_can_be(module: ModuleType, program: Program, load: LoadNext) -> None:
    """Run a program in the module; what can't be had here is stood in for by what says so."""
    namespace = vars(module)

    def failed(step: Step, error: Exception) -> None:
        _stand_in_for(step, error, namespace)

    try:
        build(module, program, load, failed)
    except Exception as error:  # noqa: BLE001  # the stream itself can't be read on
        for step in (*program.steps, *program.late):
            if step.name not in namespace:
                failed(step, error)
    for name, left_out in program.left_out.items():
        namespace[name] = stand_in(left_out.sentence, is_class=left_out.is_class)
    namespace["__getattr__"] = unknown


def _stand_in_for(step: Step, error: Exception, namespace: dict[str, Any]) -> None:
    """Put what says why in the place of what a step has failed to make."""
    what = f"{type(error).__name__}: {safe_message(error)}"
    sentence = (
        str(error)
        if isinstance(error, CannotRebuild)
        else f"{step.name!r} could not be made in this process: {what}."
    )
    match step:
        case Import(name=None) | RemoveAttribute() | Register() | Enter():
            pass
        case SetAttribute(name=name, path=path):
            with suppress(Exception):  # a definition that lets nobody set it, or is stood in for itself
                _set(namespace[name], path, stand_in(sentence, is_class=False))
        case Import(name=str(name)) | Load(name=name) | Define(name=name) | Refill(name=name):
            namespace[name] = stand_in(sentence, is_class=_makes_class(step))


def _makes_class(step: Step) -> bool:
    if not isinstance(step, Define):
        return False
    statement = placed_statement(step.text, line=step.origin.line, column=step.column)
    return isinstance(statement, ast.ClassDef)


def _is_definition(value: Any, name: str) -> bool:
    return name_in_notebook(value) == name


def remember(cells: Mapping[str, Cell]) -> None:
    """Let `linecache` know the texts of cells (a time of None: never looked for on disk)."""
    for filename, cell in cells.items():
        linecache.cache[filename] = (len(cell.text), None, cell.text.splitlines(keepends=True), filename)


def _take(step: Step, namespace: dict[str, Any], load: LoadNext) -> None:
    match step:
        case Import():
            _import(step, namespace)
        case Define():
            _define(step, namespace, _all(step.live, load))
        case Load(name=name):
            namespace[name] = load(name)
        case Refill(name=name):
            contents = load(name)
            _refill(namespace[name], contents)
        case SetAttribute(name=name, path=path):
            value = load(f"{name}.{path}")
            if not (step.only_new and path in vars(namespace[name])):
                _set(namespace[name], path, value)
        case RemoveAttribute(name=name, attribute=attribute):
            if attribute in vars(namespace[name]):
                delattr(namespace[name], attribute)
        case Register(name=name) | Enter(name=name):
            _register(step, load(name), namespace)


def _all(labels: tuple[str, ...], load: LoadNext) -> dict[str, Any]:
    """Take all values that a step asks for, also where one can't be rebuilt: the next step takes the next."""
    values: dict[str, Any] = {}
    failures: list[CannotRebuild] = []
    for label in labels:
        try:
            values[label] = load(label)
        except CannotRebuild as error:  # noqa: PERF203  # the rest is read all the same
            failures.append(error)
    if failures:
        raise failures[0]
    return values


def _import(step: Import, namespace: dict[str, Any]) -> None:
    imported = importlib.import_module(step.module)
    if step.name is not None:
        namespace[step.name] = imported if step.attribute is None else getattr(imported, step.attribute)


def _register(step: Register | Enter, value: Any, namespace: dict[str, Any]) -> None:
    if isinstance(step, Register):
        namespace[step.name].register(value)
    else:
        importlib.import_module(step.module)
        enter(step.module, *value)


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


def _set(definition: Any, path: str, value: Any) -> None:
    *outer, name = path.split(".")
    _set_attribute(functools.reduce(_part, outer, definition), name, value)


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
