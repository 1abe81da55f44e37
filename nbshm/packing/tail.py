"""The tail: values that no statement waits for, and what is set on definitions when all of them stand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nbshm.definitions.lifting import Lifted
from nbshm.definitions.states import attributes_of_class
from nbshm.definitions.uses import mangled_name
from nbshm.jobs import State, Tail
from nbshm.memory.ownership.contents import is_data_with_memory
from nbshm.packing.circles import CONTAINERS
from nbshm.packing.draft import Draft
from nbshm.packing.knowledge import Knowledge


def tail(draft: Draft, knowledge: Knowledge) -> Tail:
    """Return what follows the last definition of a draft."""
    states = {name: _state(definition, knowledge) for name, definition in draft.defined.items()}
    told = {name: state for name, state in states.items() if not state.is_empty}
    return Tail(values=draft.late, state=told, contents=draft.contents)


def deferred_keys(definition: Lifted, knowledge: Knowledge) -> tuple[str, ...]:
    """Return the live values of a definition that are set when all definitions stand.

    Those that refer to a later definition, and the containers of a class that has a hand in the making of
    others: it may fill them while they are made.
    """
    fills = definition.is_class and is_maker(knowledge.namespace[definition.name])
    return tuple(
        key
        for key in definition.deferrable
        if key in knowledge.deferred or (fills and isinstance(definition.live[key], CONTAINERS))
    )


def is_maker(kind: type) -> bool:
    """Tell whether a class runs code while other classes are made."""
    return issubclass(kind, type) or "__init_subclass__" in vars(kind)


def _state(definition: Lifted, knowledge: Knowledge) -> State:
    """Return the state of a definition, with the live values that it has not been given yet."""
    deferred = deferred_keys(definition, knowledge)
    value = knowledge.namespace[definition.name]
    given = _with_memory(definition, value) if definition.is_class else {}
    if deferred:
        names = [_in_class(key) for key in deferred] if definition.is_class else _DEFAULTS
        given.update({name: _attribute(value, name) for name in names})
    if not given:
        return definition.state
    return replace(definition.state, changed={**given, **definition.state.changed})


def _with_memory(definition: Lifted, kind: type) -> dict[str, Any]:
    """Return the attributes that hold tensors or arrays where no live value stands in for an expression.

    A loop in the class body, a decorator, a metaclass, `__init_subclass__` would make others in the worker.
    """
    return {
        path: value
        for path, value in attributes_of_class(kind)
        if f"{definition.name}.{path}" not in definition.live and is_data_with_memory(value)
    }


def _in_class(key: str) -> str:
    """Return the attribute that a key stands for, as the class has it."""
    kind, name = key.split(".")
    return mangled_name(name, kind)


_DEFAULTS = ["__defaults__", "__kwdefaults__"]


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute as it is stored."""
    return vars(value)[name] if isinstance(value, type) else getattr(value, name)
