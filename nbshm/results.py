"""The results of a run: a list by rank that reads well."""

from __future__ import annotations

from typing import Any

_WIDTH = 79


class Results(list[Any]):
    """The values of a cell's last expression, in rank order.

    A plain list in every way but its repr, which goes by rank where one line would be too long.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Write the values on one line, or by rank."""
        texts = [value_in_text(value) for value in self]
        line = f"[{', '.join(texts)}]"
        if len(line) <= _WIDTH and "\n" not in line:
            return line
        return "\n".join(_labelled(rank, text) for rank, text in enumerate(texts))


def value_in_text(value: Any) -> str:
    """Return the value's repr; one that raises must not hide the values of the other ranks."""
    try:
        return repr(value)
    except Exception as problem:  # noqa: BLE001  # whatever a foreign __repr__ does
        return f"<{type(value).__name__} whose repr raises {type(problem).__name__}>"


def _labelled(rank: int, text: str) -> str:
    label = f"[rank {rank}] "
    return label + text.replace("\n", "\n" + " " * len(label))
