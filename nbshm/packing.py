"""The definitions and values that code needs, packed in the order in which a worker can build them.

All values of a run go through one pickler with one memo, so that what is one object in the notebook is one
object in the worker. A definition that needs a value when its statement *runs* finds it in the stream before
it; all other values follow the last definition. Which definitions there are, and in which order they can
stand, shows only while values are pickled (an instance deep in a list asks for its class). So packing is a
fixed point: a pass that meets a definition that has not been written yet learns it and starts again. One or
two passes are usual.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any, Generic, NoReturn, Protocol, TypeAlias, TypeVar

from nbshm.definitions.by_value import is_cached, is_generic, reduce_cached, reduce_function, reduce_generic
from nbshm.definitions.lifting import Lifted, lift
from nbshm.definitions.names import code_attributes, code_names
from nbshm.definitions.sources import home
from nbshm.imports import Imports
from nbshm.jobs import Cell, Define, LeftOut, Load, Program, State, Tail
from nbshm.refusals import Unsendable, refusal

_IPYTHON_NAMES = frozenset({"In", "Out", "_ih", "_oh", "_dh", "__builtins__"})
_CONTAINERS = (list, dict, set)


class Pickler(Protocol):
    """What packing asks of a pickler: one stream, one memo, and a hook for the notebook's definitions."""

    @property
    def stream(self) -> bytes:
        """What has been pickled so far."""

    def dump(self, value: Any, /) -> None:
        """Pickle a value behind those that were pickled before."""


PicklerT = TypeVar("PicklerT", bound=Pickler)
Reference: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a piece of code needs: names, with where each is used; dotted names; names that may be left out.

    `all_optional`: whatever can't travel may be left out, also what others read. `extra` are values that are
    bound to names without being the notebook's values of these names.
    """

    names: Mapping[str, str]
    attributes: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    all_optional: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Notebook:
    """The notebook's namespace, what is known about its cells, and what did not travel here from there."""

    namespace: dict[str, Any]
    cells: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed(Generic[PicklerT]):
    """A program, the pickler that wrote its values, and the notebook's names that are in it."""

    program: Program
    pickler: PicklerT
    names: frozenset[str]


def pack(needs: Needs, notebook: Notebook, make_pickler: Callable[[Reference], PicklerT]) -> Packed[PicklerT]:
    """Return the program that builds a worker's `__main__`.

    `make_pickler(reference)` makes an empty pickler that asks `reference(object)` about functions, classes
    and other callables: it answers with a reduction, or NotImplemented to leave the object to the pickler.

    Raises
    ------
    CannotSend
        A value cannot travel; the message names the path to it and what to do.

    """
    known = _Known(notebook=notebook, needs=needs)
    while True:
        attempt = _Pass(known, make_pickler)
        try:
            program = attempt.program()
        except _LearntError:
            continue
        names = frozenset(known.users) & notebook.namespace.keys() - known.dropped.keys()
        return Packed(program=program, pickler=attempt.pickler, names=names)


class _LearntError(Exception):
    """A pass has learnt something that the next one must know from its start."""


@dataclass(slots=True, kw_only=True)
class _Known:
    """What one pass hands to the next.

    `edges` say which definition must stand before which other, with the live value that asks for it, if one
    does. `deferred` live values are set after the last definition, `emptied` containers filled then.
    `dropped` names are left out, with the reason.
    """

    notebook: Notebook
    needs: Needs
    users: dict[str, str] = field(default_factory=dict)
    by_value: set[str] = field(default_factory=set)
    dropped: dict[str, LeftOut] = field(default_factory=dict)
    edges: dict[str, dict[str, str | None]] = field(default_factory=dict)
    deferred: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)
    lifted: dict[str, Lifted | None] = field(default_factory=dict)
    optional: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.users.update(self.needs.names)
        self.optional.update(self.needs.optional)
        self.dropped.update(self.notebook.left_out)

    def definition(self, name: str) -> Lifted | None:
        """Return the definition that a global name can be lifted as."""
        if name in self.by_value or name in self.dropped or name not in self.notebook.namespace:
            return None
        if name not in self.lifted:
            self.lifted[name] = self._lift(name)
        return self.lifted[name]

    def _lift(self, name: str) -> Lifted | None:
        value = self.notebook.namespace[name]
        if home(value) != ("__main__", name):
            return None
        return lift(name, value, self.notebook.namespace, self.notebook.cells)


class _Pass(Generic[PicklerT]):
    """One attempt to write everything down in an order that works."""

    def __init__(self, known: _Known, make_pickler: Callable[[Reference], PicklerT]) -> None:
        self.known = known
        self.namespace = known.notebook.namespace
        self.make_pickler = make_pickler
        self.pickler = make_pickler(self._reference)
        self.imports = Imports()
        self.steps: list[Define | Load] = []
        self.defined: dict[str, Lifted] = {}
        self.loaded: set[str] = set()
        self.files: set[str] = set()
        self.contents: dict[str, Any] = {}
        self.late: dict[str, Any] = dict(known.needs.extra)
        self.in_progress: list[str] = []
        self.asking: str | None = None
        self.called: set[str] = set()
        self.attributes: set[str] = set(known.needs.attributes)

    def program(self) -> Program:
        """Write everything down, or raise `_LearntError` for another attempt."""
        settled: set[str] = set()
        while fresh := [name for name in self.known.users if name not in settled]:
            settled.update(fresh)
            for name in fresh:
                self._settle(name)
        self._dump_tail()
        if len(self.known.users) > len(settled):
            raise _LearntError
        self.imports.add_submodules(self.attributes)
        return Program(
            steps=(*self.imports.steps, *self.steps),
            values=self.pickler.stream,
            cells=self._cells(),
            left_out=dict(self.known.dropped),
        )

    def _settle(self, name: str) -> None:
        """Write down what a name stands for, or keep its value for the tail."""
        if not self._is_sent(name):
            return
        definition = self.known.definition(name)
        if definition is not None:
            self._define(definition)
        elif not self._import(name, self.namespace[name]):
            self.late[name] = self.namespace[name]

    def _is_sent(self, name: str) -> bool:
        unsent = name in self.loaded or name in self.known.dropped
        return is_of_the_notebook(name, self.namespace) and not unsent

    def _note_needs(self, definition: Lifted) -> None:
        """Note the names that a definition reads, and that it is the one who asks for them."""
        self.attributes |= definition.attributes
        for name in definition.late | definition.early:
            self.known.users.setdefault(name, definition.title)
        for name in definition.hints - self.known.users.keys():
            self.known.users[name] = definition.title
            self.known.optional.add(name)

    def _define(self, definition: Lifted) -> None:
        """Write a definition down, after what its statement needs to run."""
        name = definition.name
        if name in self.defined:
            return
        if name in self.in_progress:
            self._break_circle(name)
        self._note_needs(definition)
        self.in_progress.append(name)
        deferred = self._deferred(definition)
        for early in sorted(definition.early.union(*(definition.deferrable[key] for key in deferred))):
            self._before(early)
        for other in sorted(self.known.edges.get(name, ())):
            self._before(other)
        live = {key: value for key, value in definition.live.items() if key not in deferred}
        for key, value in live.items():
            self.asking = key
            self._dump(value, key)
            self.asking = None
        self.in_progress.pop()
        self.defined[name] = definition
        source = definition.source
        self.steps.append(
            Define(
                name=name,
                text=source.text,
                origin=source.origin,
                column=source.column,
                postponed=source.postponed,
                live=tuple(live),
                blank=() if definition.is_class else deferred,
            )
        )

    def _deferred(self, definition: Lifted) -> tuple[str, ...]:
        """Return the live values that are set when all definitions stand.

        Those that refer to a later definition, and the containers of a class that has a hand in the making of
        others: it may fill them while they are made.
        """
        is_maker = definition.is_class and _is_maker(self.namespace[definition.name])
        return tuple(
            key
            for key in definition.deferrable
            if key in self.known.deferred or (is_maker and isinstance(definition.live[key], _CONTAINERS))
        )

    def _before(self, name: str) -> None:
        """See to it that a name is bound before the definition in progress runs."""
        if not self._is_sent(name):
            return
        definition = self.known.definition(name)
        if definition is not None:
            self._define(definition)
            self._before_call(definition)
        elif not self._import(name, self.namespace[name]):
            self._load(name, self.namespace[name])

    def _load(self, name: str, value: Any) -> None:
        """Bind a value before the definition in progress runs."""
        if name in self.known.emptied:
            self.late[name], value = value, type(value)()
        self.asking = name
        self._dump(value, name)
        self.asking = None
        self.steps.append(Load(name=name))
        self.loaded.add(name)

    def _before_call(self, definition: Lifted) -> None:
        """Bind what a definition reads that may be *called* while the one in progress runs.

        A class body calls functions; a metaclass and `__init_subclass__` run with the class statement.
        """
        value = self.namespace[definition.name]
        if isinstance(value, type) and not _is_maker(value):
            return
        self.called.add(definition.name)
        for name in sorted(definition.late - self.called - set(self.in_progress)):
            self._before(name)
            if name in self.loaded and type(self.namespace[name]) in _CONTAINERS:
                self.contents[name] = self.namespace[name].copy()

    def _import(self, name: str, value: Any) -> bool:
        try:
            return self.imports.add(name, value)
        except Unsendable as error:
            self._refuse(name, error, value)

    def _dump_tail(self) -> None:
        states = {name: self._state(definition) for name, definition in self.defined.items()}
        states = {name: each for name, each in states.items() if each.changed or each.added or each.removed}
        try:
            self.pickler.dump(Tail(values=self.late, state=states, contents=self.contents))
        except _LearntError:
            raise
        except Exception as error:  # whatever a value's own pickling raises; each is tried to find it
            attributes = {
                f"{name}.{attribute}": value
                for name, state in states.items()
                for attribute, value in {**state.changed, **state.added}.items()
            }
            self._find_culprit({**attributes, **self.late}, error)
            raise

    def _state(self, definition: Lifted) -> State:
        """Return the state of a definition, with the live values that it has not been given yet."""
        deferred, state = self._deferred(definition), definition.state
        if not deferred:
            return state
        value = self.namespace[definition.name]
        names = (
            [key.split(".")[1] for key in deferred]
            if definition.is_class
            else ["__defaults__", "__kwdefaults__"]
        )
        return replace(state, changed={**{name: _attribute(value, name) for name in names}, **state.changed})

    def _find_culprit(self, values: Mapping[str, Any], problem: Exception) -> None:
        """Pickle each value alone, so that the one that can't travel is known by name.

        Where it is the sum of them that is too much, it is the biggest.
        """
        sizes = {}
        for name, value in values.items():
            try:
                sizes[name] = self._again(value)
            except _LearntError:  # noqa: PERF203  # one failure ends it
                raise
            except Exception as error:  # noqa: BLE001  # as above
                self._refuse(name, error, value)
        if sizes and isinstance(problem, Unsendable):
            self._refuse(max(sizes, key=lambda name: sizes[name]), problem)

    def _dump(self, value: Any, name: str) -> None:
        try:
            self.pickler.dump(value)
        except _LearntError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a value's own pickling raises
            self._refuse(name, error, value)

    def _refuse(self, name: str, error: Exception, value: Any = None) -> NoReturn:
        """Raise CannotSend for a name, or leave it out where it may be left out."""
        root = name.partition(".")[0]
        why = refusal(name, value, error, user=self.known.users.get(root), again=self._again)
        if self.known.needs.all_optional or root in self.known.optional:
            sentence = f"the notebook's {why.path!r} is not in this process: {why.reason}. {why.remedy}"
            is_class = isinstance(self.namespace.get(root), type)
            self.known.dropped[root] = LeftOut(sentence=sentence, is_class=is_class)
            raise _LearntError from error
        raise why from error

    def _again(self, value: Any) -> int:
        """Pickle a part of a value afresh: a memo would pass over what failed before. Return its size."""
        pickler = self.make_pickler(self._reference)
        pickler.dump(value)
        return len(pickler.stream)

    def _reference(self, value: Any) -> Any:
        """Answer the pickler: how a function, class or decorated object of the notebook is written."""
        module, path = home(value)
        if module != "__main__" or path is None:
            return NotImplemented
        if "<locals>" not in path and self._is_found_at(value, path):
            definition = self.known.definition(path.split(".")[0])
            if definition is not None:
                self._ask_for(definition)
                return path
        if isinstance(value, FunctionType) and value.__globals__ is self.namespace:
            self._note_code(value)
            return reduce_function(value)
        if is_generic(value):
            return reduce_generic(value)
        return reduce_cached(value) if is_cached(value) else NotImplemented

    def _is_found_at(self, value: Any, path: str) -> bool:
        root, *names = path.split(".")
        found: Any = self.namespace.get(root)
        for name in names:
            found = getattr(found, name, None)
        return found is value

    def _ask_for(self, definition: Lifted) -> None:
        """Note that what is being pickled refers to a definition, which must stand before it."""
        name = definition.name
        if name in self.defined:
            return
        self.known.users.setdefault(name, "a value")
        if self.in_progress:
            self.known.edges.setdefault(self.in_progress[-1], {})[name] = self.asking
        if name in self.in_progress:
            self._break_circle(name)
        raise _LearntError

    def _break_circle(self, name: str) -> NoReturn:
        """Let one of the definitions in progress, each of which must stand before another, do with less.

        What asks by a live value can be given that value later, or travel by value; so can a container that
        only has to be there.
        """
        circle = self.in_progress[self.in_progress.index(name) :]
        asked = self.known.edges
        keys = {
            one: asked.get(one, {}).get(other) for one, other in zip(circle, [*circle[1:], name], strict=True)
        }
        for one, key in keys.items():
            definition = self.known.definition(one)
            if key is not None and definition is not None and key in definition.deferrable:
                self.known.deferred.add(key)
            elif key is not None and type(self.namespace.get(key)) in _CONTAINERS:
                self.known.emptied.add(key)
            else:
                continue
            del asked[one]
            raise _LearntError
        self.known.by_value.add(next((one for one, key in keys.items() if key is not None), circle[-1]))
        raise _LearntError

    def _note_code(self, function: FunctionType) -> None:
        """Note the globals that a function reads which travels by value, and the cell that it came from."""
        self.files.add(function.__code__.co_filename)
        self.attributes |= code_attributes(function.__code__)
        for name in code_names(function.__code__):
            if is_of_the_notebook(name, self.namespace):
                self.known.users.setdefault(name, function.__qualname__)

    def _cells(self) -> dict[str, Cell]:
        """Return the text of every cell that a definition or a function came from."""
        names = self.files | {definition.source.origin.filename for definition in self.defined.values()}
        texts = {name: "".join(linecache.getlines(name)) for name in names if _is_cell(name)}
        numbers = self.known.notebook.cells
        return {name: Cell(text=text, number=numbers.get(name)) for name, text in texts.items()}


def is_of_the_notebook(name: str, namespace: Mapping[str, Any]) -> bool:
    """Tell whether a global is the person's: IPython has put some there, which a person may have shadowed."""
    if name not in namespace or name in _IPYTHON_NAMES:
        return False
    value = namespace[name]
    return not str(getattr(value, "__module__", None) or type(value).__module__).startswith("IPython.")


def _is_maker(kind: type) -> bool:
    """Tell whether a class runs code while other classes are made."""
    return issubclass(kind, type) or "__init_subclass__" in vars(kind)


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute as it is stored."""
    return vars(value)[name] if isinstance(value, type) else getattr(value, name)


def _is_cell(filename: str) -> bool:
    """Tell whether `linecache` alone knows the text, which no file holds."""
    entry = linecache.cache.get(filename)
    return entry is not None and len(entry) > 1 and entry[1] is None
