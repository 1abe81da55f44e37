"""The reducers of one pickle for everything that has memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from nbshm.memory.buffers import Buffers


def reducers(buffers: Buffers, is_shared: Callable[[Any], bool]) -> dict[type, Callable[[Any], Any]]:
    """Return reducers by type, for a pickler's dispatch table; they note memory in `buffers`.

    To be used as it is, not copied: it finds those of a class of arrays when it is asked for them.
    An array for which `is_shared` is false travels as a snapshot. Libraries that nobody has imported are not
    imported here: there can be no objects of theirs.
    """
    found: dict[type, Callable[[Any], Any]] = {}
    if "numpy" in sys.modules:
        from nbshm.memory import arrays  # noqa: PLC0415  # imports numpy

        found = arrays.reducers(buffers, is_shared)
    if "torch" in sys.modules:
        from nbshm.memory import tensors  # noqa: PLC0415  # imports torch

        found.update(tensors.reducers(buffers))
    return found
