"""Resource trackers, which clear up behind a process: they must outlive it, and so its process group.

What is left of a rank's group is killed when the rank has ended. multiprocessing's tracker, and the one that
joblib makes like it, wait for the end of all who use them, and remove the files in /dev/shm that were left.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from multiprocessing import util
from typing import Any, TypeAlias

Spawn: TypeAlias = Callable[..., int]
"""`multiprocessing.util.spawnv_passfds`, or what stands in its place."""


def keep_trackers_apart() -> None:
    """Have the trackers that this process starts from now on in sessions of their own."""
    util.spawnv_passfds = apart(util.spawnv_passfds)


def apart(original: Spawn) -> Spawn:
    """Return what starts trackers in sessions of their own, and anything else as the original does."""

    def spawn(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:
        is_tracker = any(
            "resource_tracker" in os.fsdecode(arg) for arg in args if isinstance(arg, (str, bytes))
        )
        return _spawn_in_session(path, args, passfds) if is_tracker else original(path, args, passfds)

    return spawn


def _spawn_in_session(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:
    process = subprocess.Popen(args, executable=path, pass_fds=passfds, start_new_session=True)  # noqa: S603  # as asked
    process.returncode = 0  # nobody is to wait for it here: multiprocessing does
    return process.pid
