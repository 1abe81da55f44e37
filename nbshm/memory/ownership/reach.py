"""Which arrays are the notebook's own: those that its names, plain containers and own objects hold.

Their memory is shared, so that what a worker writes is seen in the notebook. Own objects are those of
classes that the person wrote, in the notebook or in a file. An array inside another library's object (a
frame, an estimator) is not reached here, and travels as a snapshot: such an object is never half changed
behind its back.

No code of the values runs here: a lazy object would act on it, or raise. Types are looked at, never
`__class__`; containers are read as what they are built on; attributes as they are stored.
"""

from __future__ import annotations

import collections
import functools
import gc
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from nbshm.attributes import members_of, mro_of
from nbshm.memory.ownership.functions import held_by
from nbshm.memory.ownership.kinds import FILLED_BY_PEOPLE
from nbshm.own_definitions import is_of_notebook, is_own

# By id, because a metaclass may make classes that can't be hashed.
_ATOMS = frozenset(map(id, (bool, int, float, complex, str, bytes, bytearray, type(None), range, slice)))
_CONTAINERS = (list, tuple, set, frozenset, collections.deque)
_HOLDERS = (  # all that they refer to is a part
    types.MappingProxyType,
    types.MethodType,
    functools.partial,
    staticmethod,
    classmethod,
    property,
)
_WITH_CONTENTS = (dict, *_CONTAINERS, types.FunctionType, *_HOLDERS, BaseException, type)

_flags_of: Callable[[type], int] = vars(type)["__flags__"].__get__  # as type itself tells them
_HAVE_GC = 1 << 14  # Py_TPFLAGS_HAVE_GC: the garbage collector is told what the objects of a class refer to


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """How the instances of a class hold their attributes; `kind` is kept, as its id is what finds this."""

    kind: type
    dictionary: Any = None
    slots: tuple[Any, ...] = ()

    @property
    def has_attributes(self) -> bool:
        """Tell whether there may be any."""
        return self.dictionary is not None or bool(self.slots)

    def attributes(self, value: Any) -> Iterator[Any]:
        """Yield the attributes of an instance."""
        if self.dictionary is not None:
            yield from list(dict.values(self.dictionary.__get__(value, self.kind)))
        for slot in self.slots:
            try:
                yield slot.__get__(value, self.kind)
            except AttributeError:  # noqa: PERF203  # nothing has been assigned to it
                continue


class Walk:
    """A walk through the notebook's own objects, which may be taken up again from other roots.

    It meets each object once, and holds what it has met.
    """

    def __init__(self, wanted: Callable[[type], bool]) -> None:
        answers: dict[int, bool] = {}

        def is_wanted(kind: type) -> bool:  # not a method: a circle would hold what was met
            if id(kind) not in answers:
                answers[id(kind)] = wanted(kind)
            return answers[id(kind)]

        def is_not(kind: type) -> bool:
            return not is_wanted(kind)

        self._is_wanted = is_wanted
        self._kinds = _Kinds(looks_into=is_not, passes_over=is_not)
        self._met: dict[int, Any] = {}

    def has_met(self, value: Any) -> bool:
        """Tell whether it has been there."""
        return id(value) in self._met

    def reach(self, roots: Iterable[Any]) -> Iterator[Any]:
        """Yield each object of a wanted kind that can be reached from here and was not met before.

        What such an object holds is not looked at, its attributes apart.
        """
        return (value for value in _walk(roots, self._kinds, self._met) if self._is_wanted(type(value)))


def reachable(roots: Iterable[Any], wanted: Callable[[type], bool]) -> Iterator[Any]:
    """Yield each object of a wanted kind that can be reached through the notebook's own objects."""
    return Walk(wanted).reach(roots)


def own_parts(value: Any) -> Iterator[Any]:
    """Yield all that a value consists of as far as it is the notebook's own, itself included."""
    return _walk([value], _Kinds(looks_into=lambda _: True, passes_over=lambda _: False), {})


def is_plain_kind(kind: type) -> bool:
    """Tell whether objects of a class are plain data, plain containers, or the person's own."""
    if issubclass(kind, (type, BaseException)):
        return False
    return id(kind) in _ATOMS or issubclass(kind, (dict, *_CONTAINERS)) or _layout(kind).has_attributes


def is_of_libraries(kind: type) -> bool:
    """Tell whether the objects of a class are other libraries' own, which may hold anything.

    What nbshm's hold, a run's, is not theirs.
    """
    if str(members_of(kind).get("__module__")).startswith("nbshm."):
        return False
    known = (types.ModuleType, types.BuiltinFunctionType, *_WITH_CONTENTS)
    has_references = bool(_flags_of(kind) & _HAVE_GC)
    return has_references and not issubclass(kind, known) and not _layout(kind).has_attributes


class _Kinds:
    """What one walk knows of the kinds of objects, by id.

    Those that `passes_over` holds for are left out where they lead nowhere: a list may have thousands.
    """

    def __init__(self, *, looks_into: Callable[[type], bool], passes_over: Callable[[type], bool]) -> None:
        self._looks_into = looks_into
        self._passes_over = passes_over
        self._layouts: dict[int, _Layout] = {}
        self._barren = set(_ATOMS)

    def among(self, values: Sequence[Any]) -> Iterable[Any]:
        """Return the values that may lead anywhere; nothing runs in Python for each of the others."""
        ids = list(map(id, map(type, values)))
        for key, kind in dict(zip(ids, map(type, values), strict=True)).items():
            if key not in self._barren and key not in self._layouts:
                self._learn(kind)
        return () if self._barren.issuperset(ids) else compress(values, map(self._leads_on, ids))

    def contents(self, value: Any, kind: type) -> Iterator[Any]:
        """Yield what a value holds, and its attributes."""
        if self._looks_into(kind):
            yield from _contents(value, kind)
        yield from self._layouts[id(kind)].attributes(value)

    def _leads_on(self, key: int) -> bool:
        return key not in self._barren

    def _learn(self, kind: type) -> None:
        layout = self._layouts[id(kind)] = _layout(kind)
        if self._passes_over(kind) and not (layout.has_attributes or issubclass(kind, _WITH_CONTENTS)):
            self._barren.add(id(kind))


def _walk(roots: Iterable[Any], kinds: _Kinds, met: dict[int, Any]) -> Iterator[Any]:
    """Yield what was not `met` before, which is kept there: who made a slot may make its value."""
    waiting = list(kinds.among(list(roots)))
    while waiting:
        value = waiting.pop()
        if id(value) in met:
            continue
        met[id(value)] = value
        yield value
        waiting.extend(kinds.among(list(kinds.contents(value, type(value)))))


def _contents(value: Any, kind: type) -> Iterable[Any]:
    """Return what a value holds otherwise than as attributes."""
    if issubclass(kind, dict):
        return [*dict.keys(value), *dict.values(value)]
    for base in _CONTAINERS:
        if issubclass(kind, base):
            return base.__iter__(value)
    if kind is types.FunctionType:
        return (part for _, part in held_by(value))
    if issubclass(kind, type):  # a file's is imported afresh, with all that is set on it
        return members_of(value).values() if is_of_notebook(value) else ()
    if issubclass(kind, BaseException):
        return _of_exception(value, kind)
    return gc.get_referents(value) if issubclass(kind, _HOLDERS) else ()


def _of_exception(error: BaseException, kind: type) -> tuple[Any, ...]:
    """Return the arguments of an exception of an own class."""
    arguments: tuple[Any, ...] = vars(BaseException)["args"].__get__(error, kind)
    return arguments if is_own(kind) else ()


def _layout(kind: type) -> _Layout:
    """Return how attributes are held by objects of those kinds whose attributes are looked at."""
    if issubclass(kind, type) or not _is_open(kind):
        return _Layout(kind=kind)
    dictionary, slots = None, []
    for base in mro_of(kind):
        for name, member in members_of(base).items():
            if name == "__dict__" and type(member) in {
                types.GetSetDescriptorType,
                types.MemberDescriptorType,
            }:
                dictionary = member if dictionary is None else dictionary
            elif type(member) is types.MemberDescriptorType:
                slots.append(member)
    return _Layout(kind=kind, dictionary=dictionary, slots=tuple(slots))


def _is_open(kind: type) -> bool:
    """Tell whether attributes of its objects are the notebook's: in own classes, dataclasses, modules."""
    return is_own(kind) or _is_dataclass(kind) or issubclass(kind, (*FILLED_BY_PEOPLE, *_modules()))


def _modules() -> tuple[type, ...]:
    """Return the class of torch's modules, whose tensors are shared whoever has written them."""
    module = getattr(sys.modules.get("torch.nn"), "Module", None)  # another thread may be importing it
    return () if module is None else (module,)


def _is_dataclass(kind: type) -> bool:
    return any("__dataclass_fields__" in members_of(base) for base in mro_of(kind))
