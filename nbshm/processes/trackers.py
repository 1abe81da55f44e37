"""multiprocessing's resource tracker, started out of the way of what ends the kernel.

There is one in a kernel, for the notebook's own code too, and whoever needs it first starts it. It ignores
SIGTERM. Where it is in the kernel's process group, as it usually is, a kernel that is shut down or restarted
waits in vain for its end (ipykernel 7: 14 s), and who kills the whole group kills it before it has removed
the files of semaphores.
"""

from __future__ import annotations

from multiprocessing import resource_tracker, util

from nbshm.replacing import replaced
from nbshm.worker.trackers import apart


def ensure_tracker() -> None:
    """Start the resource tracker, if none runs, in a session of its own."""
    with replaced(util, "spawnv_passfds", apart(util.spawnv_passfds)):
        resource_tracker.ensure_running()
