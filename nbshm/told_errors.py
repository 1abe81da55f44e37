"""Errors that are told in their own words, and hold nothing.

IPython keeps the last error with its frames, until the next. What these have in their variables, memory of
the notebook among it, would have a holder in them that nobody can let go of.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator

from nbshm.errors import CallInterrupted, ParallelError
from nbshm.failures.chains import relatives


@contextlib.contextmanager
def told_in_words(interrupted: CallInterrupted) -> Iterator[None]:
    """Have nbshm's errors that leave the block hold nothing of it; an interrupt leaves as `interrupted`.

    An error that is being handled when the block begins is the person's, with its frames.
    """
    handled = sys.exc_info()[1]
    theirs = set(map(id, () if handled is None else relatives(handled)))
    try:
        yield
    except (ParallelError, KeyboardInterrupt) as error:
        for relative in relatives(error):
            if id(relative) not in theirs:
                traceback.clear_frames(relative.__traceback__)
        if isinstance(error, KeyboardInterrupt) and not isinstance(error, CallInterrupted):
            raise interrupted from None
        raise
