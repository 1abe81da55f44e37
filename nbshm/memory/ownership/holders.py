"""Why memory can't be moved: who else holds it, in words.

An array that something else than names holds stays where it is, because what holds it would not follow. Who
that is, only a look at all objects of the process tells: 0.1 to 0.5 s, so it is done for a message alone.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import filterfalse
from types import CellType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

from nbshm.memory.ownership.bases import chain, is_link, root
from nbshm.memory.ownership.kinds import is_array, is_plain_array
from nbshm.memory.ownership.slots import Slots
from nbshm.own_code import OWN_DIRECTORY
from nbshm.own_definitions import is_own
from nbshm.words import listed, with_article

_AT_ONCE = 1000  # objects
_NAMELESS = "something that can't be named (compiled code, say)"


class Holders:
    """All that holds one of some arrays, but for the mappings that are `known`; looked for once.

    The first of those is the notebook's namespace.
    """

    def __init__(self, arrays: Sequence[Any], known: Sequence[Mapping[Any, Any]]) -> None:
        self._namespace = known[0]
        objects = gc.get_objects()  # before there are lists here of what was found
        owners = {id(owner): owner for owner in map(_root, arrays)}
        self._named = {id(_root(value)) for mapping in known for _, value in _arrays_in(mapping)}
        ours = {id(_holder(mapping)) for mapping in known} | {id(arrays), id(owners)}
        self._found: dict[int, list[Any]] = {key: [] for key in owners}
        for container in _suspects(objects):
            if _is_our_own(container) or is_link(container):
                continue
            for holder, array in _held_arrays(container):
                if id(_root(array)) not in owners:
                    continue
                if id(holder) not in ours:
                    self._found[id(_root(array))].append(holder)
                elif not is_plain_array(array):
                    self._found[id(_root(array))].append(array)  # its name can't be bound to another

    def in_words(self, array: Any, *, told_of: str | None = None) -> str:
        """Return why an array can't be moved, as a clause about what is known by the name `told_of`."""
        views = (each for each in chain(array, is_array) if is_array(each))
        odd = next((each for each in views if not is_plain_array(each)), None)
        if odd is array:
            return f"it is a {_name(type(odd))}, and only plain arrays can be moved"
        if odd is not None:
            return f"its memory belongs to a {_name(type(odd))}"
        owner = _root(array)
        if owner.base is not None:
            base = owner.base.obj if type(owner.base) is memoryview else owner.base
            return f"its memory belongs to a {_name(type(base))}"
        holders = [self._describe(holder) for holder in self.of(owner)]
        held_by = listed(list(dict.fromkeys(holders))) or _NAMELESS
        if id(owner) not in self._named:
            return f"it has no name of its own, but is held by {held_by}"
        names = self._names_for(owner)
        if told_of is not None and names and told_of not in names:
            return f"it is held by {held_by}, and named {listed(names)} too"
        return f"it is held by {held_by} too"

    def name_of_holder(self, array: Any) -> str | None:
        """Return the name of what alone holds an array beside names: a list, a dictionary, an own object."""
        holders = {id(holder) for holder in self.of(array)}
        if len(holders) != 1:
            return None
        own = ((name, value) for name, value in self._namespace.items() if not str(name).startswith("_"))
        names = (
            name for name, value in own if _follows(value) and {id(value), id(_attributes(value))} & holders
        )
        return next(names, None)

    def of(self, array: Any) -> list[Any]:
        """Return all that holds an array, but for what is known; of attributes their dictionary or object."""
        return self._found[id(_root(array))]

    def _names_for(self, owner: Any) -> list[str]:
        """Return the person's names for an array and its views."""
        own = ((name, value) for name, value in _arrays_in(self._namespace) if not str(name).startswith("_"))
        return [str(name) for name, value in own if _root(value) is owner]

    def _describe(self, holder: Any) -> str:
        kind = type(holder)  # a lazy object acts on `isinstance`
        if kind is FrameType:
            is_last = any(frame is holder for frame in _frames_of_last_error())
            return "the last traceback" if is_last else f"a call of {holder.f_code.co_name}()"
        if kind is CellType:
            return "a closure"
        if kind is FunctionType:
            return f"the function {holder.__qualname__}()"
        if kind is dict:
            return self._describe_dictionary(holder)
        if is_array(holder):
            return f"{self._with_name(holder)} (no plain array)"
        return self._with_name(holder)

    def _describe_dictionary(self, holder: dict[Any, Any]) -> str:
        for owner in gc.get_referrers(holder):
            if type(owner) is ModuleType:
                return f"the module {owner.__name__}"
            if issubclass(type(owner), type):
                return f"the class {owner.__qualname__}"
            if _attributes(owner) is holder:
                return self._with_name(owner)
        return self._with_name(holder)

    def _with_name(self, holder: Any) -> str:
        kind = _name(type(holder))
        for name, value in list(self._namespace.items()):
            if value is holder and isinstance(name, str) and not name.startswith("_"):
                return f"the {kind} '{name}'"
        return with_article(kind)


def _follows(value: Any) -> bool:
    """Tell whether what holds arrays can be given others in their place, as far as is sure."""
    kind = type(value)
    return kind in (list, dict, deque) or (is_own(kind) and type(_attributes(value)) is dict)


def _arrays_in(mapping: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return [(name, value) for name, value in list(mapping.items()) if is_array(value)]


def _suspects(objects: list[Any]) -> Iterator[Any]:
    """Yield the objects that may hold arrays: of most, many at once are seen to hold none."""
    for start in range(0, len(objects), _AT_ONCE):
        some = objects[start : start + _AT_ONCE]
        parts = gc.get_referents(*some)
        unknown = [part for part in filterfalse(gc.is_tracked, parts) if _may_be_untracked(part)]
        kinds = [*map(type, parts), *map(type, gc.get_referents(*unknown))]
        each = dict(zip(map(id, kinds), kinds, strict=True))  # a metaclass may make some that can't be hashed
        if any(issubclass(kind, sys.modules["numpy"].ndarray) for kind in each.values()):
            yield from some


def _may_be_untracked(part: Any) -> bool:
    return type(part) is tuple or type(part) is dict


def _held_arrays(container: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the arrays that a container holds, each with its holder.

    Tuples and dictionaries of nothing but arrays are unknown to the garbage collector themselves.
    """
    for part in gc.get_referents(container):
        if is_array(part):
            yield container, part
        elif _may_be_untracked(part) and not gc.is_tracked(part):
            holder = container if _attributes(container) is part else part
            yield from ((holder, inner) for inner in gc.get_referents(part) if is_array(inner))


def _is_our_own(container: Any) -> bool:
    """Tell whether it is a frame or an object of nbshm itself."""
    if type(container) is FrameType:
        return container.f_code.co_filename.startswith(OWN_DIRECTORY)
    return str(getattr(type(container), "__module__", "")).startswith("nbshm.")


def _attributes(value: Any) -> Any:
    """Return where an object has its attributes; a lazy object must not see that."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def _holder(mapping: Mapping[Any, Any]) -> Any:
    return mapping.holder if isinstance(mapping, Slots) else mapping


def _root(array: Any) -> Any:
    return root(array, is_array)


def _frames_of_last_error() -> Iterator[FrameType]:
    errors = [getattr(sys, name, None) for name in ("last_exc", "last_value")]
    traces = [error.__traceback__ for error in errors if error is not None]
    traces.append(getattr(sys, "last_traceback", None))
    for trace in traces:
        yield from _frames(trace)


def _frames(trace: TracebackType | None) -> Iterator[FrameType]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.").removeprefix("__main__.")
