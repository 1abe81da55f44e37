"""What is private to a forkserver of the standard library, and needed of it all the same."""

from __future__ import annotations

import os
from typing import Any


def pid_of(server: Any) -> int | None:
    """Return the server's process id, None where it has not been started.

    The standard library keeps it private, and offers nothing to end a server with but a `_stop` that waits as
    long as the server likes. The names are those of Python 3.4 to 3.14.
    """
    pid: int | None = server._forkserver_pid  # noqa: SLF001  # see the docstring
    return pid


def let_go(server: Any) -> int | None:
    """Close the kernel's end of the server's alive pipe; return the process id that has to be waited for."""
    pid = pid_of(server)
    if pid is not None:
        os.close(server._forkserver_alive_fd)  # noqa: SLF001  # see `pid_of`
        server._forkserver_pid = server._forkserver_alive_fd = None  # noqa: SLF001  # see `pid_of`
    return pid
