"""Garbage collection, put off while very many objects are made that are all going to stay.

Each few hundred new objects start a collection, and many of these one of all objects that there are: without
anything to be found, it takes as long as the making of the objects.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_put_off() -> Iterator[None]:
    """Let no collection start by itself inside the block."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
