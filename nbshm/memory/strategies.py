"""torch's sharing strategies: how torch itself hands a storage to another process."""

from __future__ import annotations

from torch import multiprocessing


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
    """Put a strategy in force in this process; torch passes it on to no other.

    Raises
    ------
    ValueError
        There is no strategy of that name here; the message lists those that there are.

    """
    if name not in strategies():
        raise ValueError(f"no sharing strategy is called {name!r}; there are {', '.join(strategies())}")
    multiprocessing.set_sharing_strategy(name)  # type: ignore[no-untyped-call]
