"""The definitions and values that a piece of code needs, packed in the order in which a worker can build them.

All values of a run go through one pickler with one memo, so that what is one object in the notebook is one object
in the worker. A definition that needs a value when its statement *runs* finds it in the stream before it; all other
values follow the last definition. Which definitions there are, and in which order they can stand, shows only while
values are pickled (an instance deep in a list asks for its class). So packing is a fixed point: a pass that meets a
definition that has not been written yet learns it and starts again. One or two passes are usual.
"""

from __future__ import annotations

import importlib.util
import linecache
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from nbshm.definitions.by_value import reduce_function
from nbshm.definitions.lifting import Lifted, lift
from nbshm.definitions.names import code_attributes, code_names
from nbshm.jobs import Cell, Define, Import, Load, Program, Step, Tail
from nbshm.refusals import Unsendable, refusal

IPYTHON_NAMES = frozenset({"In", "Out", "_ih", "_oh", "_dh", "exit", "quit", "get_ipython", "open", "__builtins__"})


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

    `all_optional`: whatever can't travel may be left out, also what others read. `extra` are values that are bound
    to names without being the notebook's values of these names.
    """

    names: Mapping[str, str]
    attributes: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    all_optional: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Notebook:
    """The notebook's namespace, and what is known about its cells."""

    namespace: dict[str, Any]
    cells: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed(Generic[PicklerT]):
    """A program, the pickler that wrote its values, and the notebook's names that are in it."""

    program: Program
    pickler: PicklerT
    names: frozenset[str]


def pack(
    needs: Needs, notebook: Notebook, make_pickler: Callable[[Reference], PicklerT]
) -> Packed[PicklerT]:
    """Return the program that builds a worker's `__main__`.

    `make_pickler(reference)` makes an empty pickler that asks `reference(object)` about functions, classes and
    other callables: it answers with a reduction, or NotImplemented to leave the object to the pickler.

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
        names = frozenset(known.users) & notebook.namespace.keys() - known.dropped
        return Packed(program=program, pickler=attempt.pickler, names=names)


class _LearntError(Exception):
    """A pass has learnt something that the next one must know from its start."""


@dataclass(slots=True, kw_only=True)
class _Known:
    """What one pass hands to the next."""

    notebook: Notebook
    needs: Needs
    users: dict[str, str] = field(default_factory=dict)
    by_value: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    edges: dict[str, set[str]] = field(default_factory=dict)
    lifted: dict[str, Lifted | None] = field(default_factory=dict)
    optional: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.users.update(self.needs.names)
        self.optional.update(self.needs.optional)

    def definition(self, name: str) -> Lifted | None:
        """Return the definition that a global name can be lifted as."""
        if name in self.by_value or name in self.dropped or name not in self.notebook.namespace:
            return None
        if name not in self.lifted:
            self.lifted[name] = self._lift(name)
        return self.lifted[name]

    def _lift(self, name: str) -> Lifted | None:
        value = self.notebook.namespace[name]
        if getattr(value, "__module__", None) != "__main__" or getattr(value, "__qualname__", None) != name:
            return None
        return lift(name, value, self.notebook.namespace, self.notebook.cells)


class _Pass(Generic[PicklerT]):
    """One attempt to write everything down in an order that works."""

    def __init__(self, known: _Known, make_pickler: Callable[[Reference], PicklerT]) -> None:
        self.known = known
        self.namespace = known.notebook.namespace
        self.make_pickler = make_pickler
        self.pickler = make_pickler(self._reference)
        self.imports: dict[tuple[str, str | None], Import] = {}
        self.steps: list[Define | Load] = []
        self.defined: dict[str, Lifted] = {}
        self.loaded: set[str] = set()
        self.late: dict[str, Any] = dict(known.needs.extra)
        self.in_progress: list[str] = []
        self.called: set[str] = set()
        self.attributes: set[str] = set(known.needs.attributes)

    def program(self) -> Program:
        """Write everything down, or raise `_LearntError` for another attempt."""
        settled: set[str] = set()
        while fresh := [name for name in self.known.users if name not in settled]:
            settled.update(fresh)
            for name in fresh:
                self._settle(name)
        self._import_submodules()
        self._dump_tail()
        if len(self.known.users) > len(settled):
            raise _LearntError
        steps: tuple[Step, ...] = (*self.imports.values(), *self.steps)
        return Program(steps=steps, values=self.pickler.stream, cells=self._cells())

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
        unsent = name in IPYTHON_NAMES or name in self.loaded or name in self.known.dropped
        return name in self.namespace and not unsent

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
            self.known.by_value.add(self.in_progress[-1])
            raise _LearntError
        self._note_needs(definition)
        self.in_progress.append(name)
        for early in sorted(definition.early):
            self._before(early)
        for other in sorted(self.known.edges.get(name, ())):
            self._before(other)
        for key, value in definition.live.items():
            self._dump(value, key)
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
                live=tuple(definition.live),
            )
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
            self._dump(self.namespace[name], name)
            self.steps.append(Load(name=name))
            self.loaded.add(name)

    def _before_call(self, definition: Lifted) -> None:
        """Bind what a definition reads that may be *called* while the one in progress runs.

        A class body calls functions; a metaclass and `__init_subclass__` run with the class statement.
        """
        value = self.namespace[definition.name]
        if isinstance(value, type) and not (issubclass(value, type) or "__init_subclass__" in vars(value)):
            return
        self.called.add(definition.name)
        for name in sorted(definition.late - self.called - set(self.in_progress)):
            self._before(name)

    def _import(self, name: str, value: Any) -> bool:
        """Write an import down if the value is a module, or has a home in one."""
        if isinstance(value, ModuleType):
            self._check_module(name, value)
            step = Import(module=value.__name__, name=name)
        else:
            home = importable_home(value)
            if home is None:
                return False
            step = Import(module=home[0], attribute=home[1], name=name)
        self.imports[step.module, name] = step
        return True

    def _check_module(self, name: str, module: ModuleType) -> None:
        if module.__name__ == "__main__" or can_be_imported(module):
            return
        reason = f"the module {module.__name__!r} can't be imported in a worker"
        self._refuse(name, Unsendable(reason, "Import it from a file or a package."))

    def _import_submodules(self) -> None:
        """Import what `import a.b` bound only as an attribute of a package: `scipy.stats` behind `scipy`."""
        packages = [step for step in self.imports.values() if step.attribute is None]
        for step in packages:
            for attribute in sorted(self.attributes):
                root, _, rest = attribute.partition(".")
                self._import_path(step.module, rest if root == step.name else attribute)

    def _import_path(self, package: str, path: str) -> None:
        for part in path.split("."):
            package = f"{package}.{part}"
            if package not in sys.modules:
                return
            self.imports.setdefault((package, None), Import(module=package))

    def _dump_tail(self) -> None:
        state = {name: definition.state for name, definition in self.defined.items()}
        state = {name: value for name, value in state.items() if value.changed or value.added}
        try:
            self.pickler.dump(Tail(values=self.late, state=state))
        except _LearntError:
            raise
        except Exception:  # whatever a value's own pickling raises; each name is tried to find it
            self._find_culprit({**state, **self.late})
            raise

    def _find_culprit(self, values: Mapping[str, Any]) -> None:
        """Pickle each value alone, so that the one that can't travel is known by name."""
        for name, value in values.items():
            try:
                self._again(value)
            except _LearntError:
                raise
            except Exception as error:  # noqa: BLE001  # as above
                self._refuse(name, error, value)

    def _dump(self, value: Any, name: str) -> None:
        try:
            self.pickler.dump(value)
        except _LearntError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a value's own pickling raises
            self._refuse(name, error, value)

    def _refuse(self, name: str, error: Exception, value: Any = None) -> None:
        """Raise CannotSend for a name, or leave it out where it may be left out."""
        root = name.split(".")[0]
        if self.known.needs.all_optional or root in self.known.optional:
            self.known.dropped.add(root)
            raise _LearntError from error
        user = self.known.users.get(root)
        raise refusal(name, value, error, user=user, again=self._again) from error

    def _again(self, value: Any) -> None:
        """Pickle a part of a value afresh: a memo would pass over what failed before."""
        self.make_pickler(self._reference).dump(value)

    def _reference(self, value: Any) -> Any:
        """Answer the pickler: how a function, class or decorated object of the notebook is written."""
        if getattr(value, "__module__", None) != "__main__":
            return NotImplemented
        path = getattr(value, "__qualname__", None)
        if isinstance(path, str) and "<locals>" not in path and self._is_found_at(value, path):
            definition = self.known.definition(path.split(".")[0])
            if definition is not None:
                self._ask_for(definition)
                return path
        if isinstance(value, FunctionType) and value.__globals__ is self.namespace:
            self._note_reads(value)
            return reduce_function(value)
        return NotImplemented

    def _is_found_at(self, value: Any, path: str) -> bool:
        found: Any = self.namespace.get(path.split(".")[0])
        for name in path.split(".")[1:]:
            found = getattr(found, name, None)
        return found is value

    def _ask_for(self, definition: Lifted) -> None:
        """Note that what is being pickled refers to a definition, which must stand before it."""
        name = definition.name
        if name in self.defined:
            return
        if self.in_progress:
            if name in self.in_progress:
                self.known.by_value.add(self.in_progress[-1])
            self.known.edges.setdefault(self.in_progress[-1], set()).add(name)
        self.known.users.setdefault(name, "a value")
        raise _LearntError

    def _note_reads(self, function: FunctionType) -> None:
        """Note the globals that a function reads which travels by value."""
        self.attributes |= code_attributes(function.__code__)
        for name in code_names(function.__code__):
            if name in self.namespace and name not in IPYTHON_NAMES:
                self.known.users.setdefault(name, function.__qualname__)

    def _cells(self) -> dict[str, Cell]:
        """Return the text of every cell that a definition came from."""
        names = {definition.source.origin.filename for definition in self.defined.values()}
        numbers = self.known.notebook.cells
        return {name: Cell(text="".join(linecache.getlines(name)), number=numbers.get(name)) for name in names}


def importable_home(value: Any) -> tuple[str, str] | None:
    """Return the (module, name) under which a function or class is found by an import."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__" or "." in name:
        return None
    if not isinstance(value, type) and not callable(value):
        return None
    home = sys.modules.get(module)
    if home is None or getattr(home, name, None) is not value or not can_be_imported(home):
        return None
    return module, name


def can_be_imported(module: ModuleType) -> bool:
    """Tell whether a worker will find the module: one that was made by hand has no spec to be found by."""
    if module.__name__ in sys.builtin_module_names:
        return True
    try:
        return importlib.util.find_spec(module.__name__) is not None
    except (ValueError, ImportError):
        return False
