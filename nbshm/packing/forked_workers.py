"""What a forked worker needs: it begins as a copy of the notebook, so only shared memory has to reach it.

Nothing is lifted or sent that holds no memory: files, locks and connections of the notebook are there.
Tensors, and arrays that move, are in shared memory before the fork. A mirrored array is not: the notebook's
own stays where it is, and what a rank writes into its copy of that would be lost. So values that hold memory
are sent, as to any worker, and bound in the worker's `__main__`. Of a value that can't be sent what can move
is moved; only that is shared.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from nbshm.attributes import attribute, found_at
from nbshm.definitions.by_value import reduce_by_name, reduce_function
from nbshm.definitions.live_values import raw_function
from nbshm.definitions.names import code_names
from nbshm.definitions.states import State, attributes_of_class
from nbshm.given_names import IPYTHON_NAMES
from nbshm.jobs import Cell, Program
from nbshm.memory.capturing import CapturingPickler
from nbshm.memory.ownership.contents import tensors_and_arrays
from nbshm.notebook.namespace import Notebook
from nbshm.own_definitions import is_notebooks
from nbshm.packing import Needs, Packed, Reference
from nbshm.packing.reached_code import definitions_behind
from nbshm.packing.tail import late_states, late_values
from nbshm.packing.values import write


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedForFork:
    """The values to bind in a forked worker; `unsent` are values with memory that can't be sent, by name."""

    packed: Packed[CapturingPickler]
    unsent: dict[str, Any]


def pack_for_fork(
    needs: Needs, notebook: Notebook, make_pickler: Callable[[Reference], CapturingPickler]
) -> PackedForFork:
    """Pack the values that hold memory, of those that the code needs."""
    namespace = notebook.namespace
    names, classes = _needed(needs.names, namespace)
    unsent: dict[str, Any] = {}

    def holds_memory(path: str, value: Any) -> bool:
        holds = _holds_memory(value, make_pickler(_Reference(namespace)))
        if holds is None:
            unsent[path] = value
        return bool(holds)

    holders = {name: namespace[name] for name in sorted(names) if holds_memory(name, namespace[name])}
    states = _states(classes, namespace, holds_memory)
    pickler = make_pickler(_Reference(namespace))
    late = [*late_values(holders), *late_states(states)]
    write(pickler, [each.value for each in late])
    program = Program(
        steps=(),
        late=tuple(each.step for each in late),
        values=pickler.stream,
        cells=_cells(notebook),
        left_out={},
    )
    return PackedForFork(
        packed=Packed(program=program, pickler=pickler, names=frozenset(names)), unsent=unsent
    )


def _states(
    classes: Iterable[type], namespace: dict[str, Any], holds_memory: Callable[[str, Any], bool]
) -> dict[str, State]:
    """Return the attributes that hold memory, of those classes that have a name."""
    held = {
        kind.__name__: {
            name: value for name, value in _attributes(kind) if holds_memory(f"{kind.__name__}.{name}", value)
        }
        for kind in classes
        if namespace.get(kind.__name__) is kind
    }
    return {name: State(changed=attributes, added={}) for name, attributes in held.items() if attributes}


def _attributes(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield what may hold arrays among the attributes of a class of the notebook, by dotted paths."""
    for path, value in attributes_of_class(kind):
        if _holds_arrays(raw_function(value) or value):
            yield path, value


def _cells(notebook: Notebook) -> dict[str, Cell]:
    """Return all cells: any of their code may run in a forked worker, which calls them by their numbers."""
    return {
        filename: Cell(text="".join(linecache.getlines(filename)), number=number)
        for filename, number in notebook.cells.items()
    }


def _holds_memory(value: Any, pickler: CapturingPickler) -> bool | None:
    """Tell whether there is memory to share in a value; None if there is, but the value can't be sent."""
    try:
        pickler.dump(value)
    except Exception:  # noqa: BLE001  # whatever a value's own pickling raises: it is in the worker anyway
        return None if _holds_arrays(value) else False
    return any(buffer.kind != "snapshot" for buffer in pickler.buffers)


class _Reference:
    """Answers a pickler: what the notebook defines is there under its name, unless arrays hang on it."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace

    def __call__(self, value: Any) -> Any:
        if not is_notebooks(value):
            return NotImplemented
        path = attribute(value, "__qualname__")
        if isinstance(path, str) and found_at(path, self._namespace) is value and not _has_arrays(value):
            return reduce_by_name(value, path)
        if type(value) is FunctionType and value.__globals__ is self._namespace:
            return reduce_function(value)
        return NotImplemented


def _needed(names: Iterable[str], namespace: dict[str, Any]) -> tuple[set[str], list[type]]:
    """Return the names that code needs, with those that the functions behind them read, and so on.

    And the classes that are behind them.
    """
    waiting = list(names)
    needed, classes, seen = set[str](), list[type](), set[int]()
    while waiting:
        name = waiting.pop()
        if name in needed or name in IPYTHON_NAMES or name not in namespace:
            continue
        needed.add(name)
        for definition in definitions_behind(namespace[name], namespace, seen):
            if isinstance(definition, FunctionType):
                waiting.extend(code_names(definition.__code__))
            else:
                classes.append(definition)
    return needed, classes


def _has_arrays(definition: Any) -> bool:
    """Tell whether arrays hang on a function; those of a class are set on it."""
    return isinstance(definition, FunctionType) and _holds_arrays(definition)


def _holds_arrays(value: Any) -> bool:
    return next(tensors_and_arrays(value), None) is not None
