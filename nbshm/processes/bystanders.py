"""Starting a process that stands by the kernel, and ends with it or soon after."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nbshm.bystanders


def start_bystander(
    script: str, *arguments: str, pass_fds: Sequence[int] = ()
) -> tuple[subprocess.Popen[bytes], int]:
    """Run a file of `bystanders/` without waiting for it; return the process and what writes to its stdin.

    The caller owns that descriptor, which nobody else holds: when the kernel is gone, however that came
    about, the process reads the end.
    """
    read_end, write_end = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603  # our own file, run by our own interpreter
            [sys.executable, "-I", "-S", str(_DIRECTORY / script), *arguments],
            stdin=read_end,
            stdout=subprocess.DEVNULL,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    except BaseException:
        os.close(write_end)
        raise
    finally:
        os.close(read_end)
    return process, write_end


_DIRECTORY = Path(nbshm.bystanders.__path__[0])
