"""torch's sharing strategies: how torch itself hands a storage to another process."""

from __future__ import annotations

import torch
from torch import multiprocessing

from nbshm.machine.descriptor_limit import descriptors_in_words
from nbshm.memory.shared.limits import shared_memory_left
from nbshm.words import bytes_in_words

_MEANINGS = {
    "file_descriptor": "a descriptor for each storage, and nothing to leave behind",
    "file_system": "a name in /dev/shm for each storage, removed by torch_shm_manager",
}


class NoStrategy(ValueError):  # noqa: N818  # its name is the condition
    """A sharing strategy can't be used here; the message is a whole sentence about why, and what to do."""


def strategies() -> tuple[str, ...]:
    """Return the names of the strategies that this system has."""
    return tuple(sorted(multiprocessing.get_all_sharing_strategies()))  # type: ignore[no-untyped-call]


def strategy() -> str:
    """Return the name of the strategy in force in this process."""
    return str(multiprocessing.get_sharing_strategy())  # type: ignore[no-untyped-call]


def default_strategy() -> str:
    """Return the name of the strategy that a process has in which nobody has chosen one."""
    return "file_descriptor" if "file_descriptor" in strategies() else "file_system"


def use_strategy(name: str) -> None:
    """Put a strategy in force in this process; torch passes it on to no other."""
    multiprocessing.set_sharing_strategy(name)  # type: ignore[no-untyped-call]


def check_strategy(name: str) -> None:
    """See that a strategy works in this process.

    Raises
    ------
    NoStrategy
        There is none of that name here (the message lists those that there are), or torch can't start what
        it needs.

    """
    if name not in strategies():
        raise NoStrategy(f"no sharing strategy is called {name!r}; there are {', '.join(strategies())}.")
    if name == "file_system":
        _probe_manager()


def overview() -> list[str]:
    """Return lines about the strategies of this system: what each is, which is in force, what room it has."""
    names = strategies()
    width = max(map(len, names))
    lines = [
        f"{name:{width}}  {_MEANINGS[name]}{' (in force)' if name == strategy() else ''}" for name in names
    ]
    room = shared_memory_left()
    if room is not None:
        lines.append(f"room in {room.where}, which torch needs for both: {bytes_in_words(room.nbytes)}")
    return [
        *lines,
        f"open descriptors: {descriptors_in_words()}",
        "What a parallel cell shares needs neither: a few descriptors for all of it, and memory.",
    ]


def _probe_manager() -> None:
    """Share one byte by name, for which torch starts its manager once in a process, and then talks to it.

    `_new_using_filename_cpu` is what torch's own `share_memory_` calls; there is no other way to ask.
    """
    try:
        torch.UntypedStorage._new_using_filename_cpu(1)  # noqa: SLF001  # see above
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise NoStrategy(
            f"file_system can't be used here: torch's torch_shm_manager doesn't work ({reason}). It must be "
            "executable, and able to write to TMPDIR, whose path must be short. Where it was ended, only a "
            "new kernel starts another."
        ) from error
