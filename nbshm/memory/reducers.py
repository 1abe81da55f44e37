"""The reducers of one pickle for everything that has memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from nbshm.memory import delegates
from nbshm.memory.buffers import Buffers
from nbshm.refusals import Unshareable

Reducer: TypeAlias = Callable[[Any], Any]
MeetGraph: TypeAlias = Callable[[str, str], None]
"""Called for what is part of an autograd graph, with how it is told of ("it") and how to detach it."""


class Reducers(dict[type, Reducer]):
    """Reducers by exact type; those of derived classes are found when they are first asked for.

    `finders` answer for a class with its reducer, or with None if it is left to pickle itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self.finders: list[Callable[[type], Reducer | None]] = []
        self._without: set[type] = set()

    def __missing__(self, kind: type) -> Reducer:
        """Find the reducer of a derived class; KeyError if there is none."""
        if kind not in self._without:  # of which there may be thousands of objects
            for find in self.finders:
                found = find(kind)
                if found is not None:
                    self[kind] = found
                    return found
            self._without.add(kind)
        raise KeyError(kind)


def refuse_graph(what: str, remedy: str) -> None:
    """Refuse a tensor that was computed from one that requires grad."""
    raise Unshareable(f"{what} is part of an autograd graph, which can't cross processes", f"Use {remedy}.")


def reducers(
    buffers: Buffers,
    is_shared: Callable[[Any], bool],
    *,
    meet_graph: MeetGraph = refuse_graph,
    lends_masks: bool = False,
) -> Reducers:
    """Return reducers by type, for a pickler's dispatch table; they note memory in `buffers`.

    To be used as it is, not copied, since it finds some only when it is asked for them. An array for which
    `is_shared` is false travels as a snapshot. `meet_graph` is called for each tensor that is part of an
    autograd graph, and travels detached from it unless that raises. `lends_masks`: masked arrays that have
    none are lent masks, for what ranks mask. Libraries that nobody has imported are not imported here: there
    can be no objects of theirs.
    """
    found = Reducers()
    if "numpy" in sys.modules:
        from nbshm.memory import arrays  # noqa: PLC0415  # imports numpy

        array = arrays.ArrayReducer(buffers=buffers, is_shared=is_shared, lends_masks=lends_masks)
        found.update(arrays.reducers(array))
        found.finders.append(array.of_class)
    if "torch" in sys.modules:
        from nbshm.memory.tensors import (  # noqa: PLC0415  # torch is slow to import
            custom_operators,
            loaders,
            optimizers,
            parametrized,
            plain_tensors,
            reducer,
        )

        plain = plain_tensors.PlainTensors(buffers=buffers)
        tensor = reducer.TensorReducer(buffers=buffers, plain=plain, meet_graph=meet_graph)
        found.update(reducer.reducers(tensor))
        found.finders += [
            tensor.of_class,
            parametrized.of_class,
            optimizers.of_class,
            loaders.of_class,
            custom_operators.of_class,
        ]
    found.finders.append(delegates.of_class)
    return found
