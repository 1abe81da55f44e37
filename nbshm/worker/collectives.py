"""Collectives of `torch.distributed` in a rank: reported where they go over memory of the notebook's.

A collective means each rank to bring memory of its own. What the notebook has is the same memory in all of
them: a sum over it counts it as often as there are ranks. Whether they bring the same piece only the kernel
can see: `all_reduce(parts[rank])` is as it should be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from nbshm.events import CalledCollective, Event
from nbshm.jobs import Spot

_MOST_REPORTED = 100
"""Calls that a rank reports: one that has gone well so often need not cost anything in a long loop."""

# The methods of a process group, by which all that Python code calls goes, whatever it knows the functions
# by; the functions' names; and the arguments in which each rank is to have memory of its own. Where all get
# the same (the outputs of `all_gather`) they may well get it in one place.
_METHODS = {
    "allreduce": ("all_reduce", (0,)),
    "reduce": ("reduce", (0,)),
    "broadcast": ("broadcast", (0,)),
    "allgather": ("all_gather", (1,)),
    "_allgather_base": ("all_gather_into_tensor", (1,)),
    "all_gather_single": ("all_gather_into_tensor", (1,)),  # torch 2.13's name for it
    "gather": ("gather", (1,)),
    "scatter": ("scatter", (0,)),
    "reduce_scatter": ("reduce_scatter", (0, 1)),
    "_reduce_scatter_base": ("reduce_scatter_tensor", (0, 1)),
    "reduce_scatter_single": ("reduce_scatter_tensor", (0, 1)),  # likewise
    "alltoall": ("all_to_all", (0, 1)),
    "alltoall_base": ("all_to_all_single", (0, 1)),
    "all_to_all_single": ("all_to_all_single", (0, 1)),  # likewise
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Collectives:
    """Reports the collectives of a rank that go over the notebook's memory.

    `spot_of` tells where in that a tensor begins, None for other memory; `place` where the rank is.
    """

    rank: int
    spot_of: Callable[[torch.Tensor], Spot | None]
    place: Callable[[], str]
    say: Callable[[Event], None]
    _calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    _reports: Iterator[int] = field(default_factory=lambda: iter(range(_MOST_REPORTED)))

    def follow(self, process_group: Any) -> None:
        """Look at what the methods of that class are given, from now on."""
        for method, (name, positions) in _METHODS.items():
            if hasattr(process_group, method):
                original = getattr(process_group, method)
                setattr(process_group, method, self._looking(original, name, positions))

    def _looking(self, method: Any, name: str, positions: Sequence[int]) -> Any:
        def call(group: Any, *arguments: Any, **named: Any) -> Any:
            self._look(group, name, [argument for at in positions for argument in arguments[at : at + 1]])
            return method(group, *arguments, **named)

        return call

    def _look(self, group: Any, name: str, arguments: Sequence[Any]) -> None:
        members = getattr(group, "group_name", "")  # all of them know the group by it
        number = self._calls[members, name]
        self._calls[members, name] += 1
        spots = frozenset(filter(None, map(self.spot_of, _tensors(arguments))))
        if spots and next(self._reports, None) is not None:
            called = CalledCollective(
                rank=self.rank, group=members, name=name, number=number, spots=spots, place=self.place()
            )
            self.say(called)


def _tensors(arguments: Sequence[Any]) -> Iterator[torch.Tensor]:
    """Yield tensors, also those in lists and in lists of lists."""
    for argument in arguments:
        if isinstance(argument, torch.Tensor) and torch._C._has_storage(argument):  # noqa: SLF001  # no other way
            yield argument
        elif isinstance(argument, (list, tuple)):
            yield from _tensors(argument)
