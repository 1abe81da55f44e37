"""What a forkserver imports beside the rest for a notebook that uses torch.

A process that makes its first optimizer imports torch's compiler, which takes more than a second. Not in the
first forkserver: the notebook's first parallel cell would have to wait for it.
"""

from __future__ import annotations

import contextlib
import importlib

from nbshm.worker.preload import settle

with contextlib.suppress(ImportError):  # there is no torch, or an old one
    importlib.import_module("torch._dynamo")
settle()
