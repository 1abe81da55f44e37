"""The tail: values that no statement waits for, and what is set on definitions when all of them stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from nbshm.definitions.lifting import Lifted
from nbshm.definitions.registers import entries_for
from nbshm.definitions.states import State, attributes_of_class
from nbshm.definitions.uses import mangled_name
from nbshm.jobs import Enter, Load, Refill, Register, RemoveAttribute, SetAttribute, Step
from nbshm.memory.ownership.contents import is_data_with_memory
from nbshm.own_definitions import is_of_notebook
from nbshm.packing.circles import CONTAINERS
from nbshm.packing.draft import Draft
from nbshm.packing.knowledge import Knowledge


class Late(NamedTuple):
    """A step that follows the last definition, with the value that it takes from the stream, if it does.

    `label` tells of the value: `f`, `f.calls`.
    """

    step: Step
    label: str
    value: Any = None

    @property
    def takes(self) -> bool:
        """Whether the step takes a value."""
        return not isinstance(self.step, RemoveAttribute)


def tail(draft: Draft, knowledge: Knowledge) -> list[Late]:
    """Return what follows the last definition of a draft."""
    states = {name: _state(definition, knowledge) for name, definition in draft.defined.items()}
    entered = _entries(draft, knowledge)
    return [*late_values(draft.late), *_contents(draft.contents), *late_states(states), *entered]


def late_values(values: Mapping[str, Any]) -> Iterator[Late]:
    """Yield the steps that bind values."""
    # Objects of the notebook's own classes last: one that can't be rebuilt takes along what it is the first
    # to refer to, a proxy what it stands for.
    ordered = sorted(values.items(), key=lambda item: is_of_notebook(type(item[1])))
    return (Late(Load(name=name), name, value) for name, value in ordered)


def _contents(contents: Mapping[str, Any]) -> Iterator[Late]:
    return (Late(Refill(name=name), name, value) for name, value in contents.items())


def _entries(draft: Draft, knowledge: Knowledge) -> Iterator[Late]:
    """Yield the steps that enter classes where the notebook has registered them.

    What can't travel is left out: code that uses the class may have no use for it.
    """
    classes = [name for name, definition in draft.defined.items() if definition.is_class]
    for name in classes:
        for module, key, value in entries_for(knowledge.namespace[name]):
            label = f"{name} in {module.rpartition('.')[2]}"
            knowledge.optional.add(label)
            if label not in knowledge.dropped:
                yield Late(Enter(name=name, module=module), label, (key, value))


def late_states(states: Mapping[str, State]) -> Iterator[Late]:
    """Yield the steps that give definitions their state."""
    for name, state in states.items():
        for path, value in state.changed.items():
            yield Late(SetAttribute(name=name, path=path), f"{name}.{path}", value)
        for path, value in state.added.items():
            yield Late(SetAttribute(name=name, path=path, only_new=True), f"{name}.{path}", value)
        for attribute in state.removed:
            yield Late(RemoveAttribute(name=name, attribute=attribute), f"{name}.{attribute}")
        for subclass in state.registered:
            yield Late(Register(name=name), name, subclass)


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
