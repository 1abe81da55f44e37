"""multiprocessing's default start method, left as undecided as the notebook has it.

The standard library asks for it whenever it makes a process, and asking decides it: `set_start_method` in a
later cell would fail.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from multiprocessing import get_start_method, set_start_method


@contextlib.contextmanager
def start_method_kept() -> Iterator[None]:
    """Keep the default start method open, if it is, whatever asks for it meanwhile."""
    before = get_start_method(allow_none=True)
    try:
        yield
    finally:
        if before is None:
            set_start_method(None, force=True)
