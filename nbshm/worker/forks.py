"""A child that the body has forked, and that has run on to the body's end: it ends there.

It ends as a child does that a script forks, with an exit code of its own, and on stderr what it ended by. It
is no rank: what it would have told the kernel by the rank's channel is not said (see `Seat`).
"""

from __future__ import annotations

import os
import sys
import threading
from typing import NoReturn

from nbshm.worker import standard_streams
from nbshm.worker.bodies import BodyEnd, BodyExited, BodyInterrupted, BodyRaised, BodyValue


def end_forked_child(end: BodyEnd) -> NoReturn:
    """End this process as the body has ended in it."""
    code = 1
    try:
        code = _tell(end)
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001  # as the end of any process begins
        standard_streams.flush()
    finally:
        os._exit(code)  # not past what the rank is to do at its own end


def _tell(end: BodyEnd) -> int:
    """Write on stderr what a script's end would have there, and return the exit code."""
    match end:
        case BodyValue():
            return 0
        case BodyExited(code=code, text=text):
            if text is not None:
                print(text, file=sys.stderr)  # noqa: T201  # as Python does
            return code & 0xFF
        case BodyRaised(report=report):
            print("A process that the body has forked ended by this:", file=sys.stderr)  # noqa: T201  # likewise
            print(report.rendered, file=sys.stderr, end="")  # noqa: T201  # likewise
        case BodyInterrupted():
            pass
    return 1
