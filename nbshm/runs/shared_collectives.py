"""Collectives of `torch.distributed` that ranks call with the same memory: it is the notebook's."""

from __future__ import annotations

from collections import defaultdict

from nbshm.events import CalledCollective
from nbshm.jobs import Spot


class SharedCollectives:
    """Compares what ranks bring to each collective; tells once where two bring the same memory."""

    def __init__(self) -> None:
        self._brought: defaultdict[tuple[str, str, int], set[Spot]] = defaultdict(set)
        self._has_told = False

    def see(self, called: CalledCollective) -> str | None:
        """Take a rank's call, and say what is wrong with it where that has not been said."""
        brought = self._brought[called.group, called.name, called.number]
        is_shared = not brought.isdisjoint(called.spots)
        brought |= called.spots
        if self._has_told or not is_shared:
            return None
        self._has_told = True
        return _in_words(called)


def _in_words(called: CalledCollective) -> str:
    at = f" at {called.place}" if called.place else ""
    return (
        f"{called.name}{at} goes over a tensor of the notebook's, which all ranks share, as if each had one "
        f"of its own. Give each rank its own (x.clone(), copy.deepcopy(metric)), or leave {called.name} out."
    )
