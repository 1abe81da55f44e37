"""multiprocessing's resource tracker, started out of the way of what ends the kernel.

There is one in a kernel, for the notebook's own code too, and whoever needs it first starts it. It ignores
SIGTERM. Where it is in the kernel's process group, as it usually is, a kernel that is shut down or restarted
waits in vain for its end (ipykernel 7: 14 s), and who kills the whole group kills it before it has removed
the files of semaphores.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from multiprocessing import resource_tracker, util
from typing import Any


def ensure_tracker() -> None:
    """Start the resource tracker, if none runs, in a session of its own."""
    original = util.spawnv_passfds

    def spawn(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:
        if not any("resource_tracker" in os.fsdecode(arg) for arg in args if isinstance(arg, (str, bytes))):
            return original(path, args, passfds)  # another thread's process
        return _spawn_in_session(path, args, passfds)

    util.spawnv_passfds = spawn
    try:
        resource_tracker.ensure_running()
    finally:
        util.spawnv_passfds = original


def _spawn_in_session(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:
    process = subprocess.Popen(args, executable=path, pass_fds=passfds, start_new_session=True)  # noqa: S603  # as asked
    process.returncode = 0  # nobody is to wait for it here: multiprocessing does
    return process.pid
