"""What nbshm has to say about a run in a line: of ranks that stand still, and that linger."""

from __future__ import annotations

from collections.abc import Sequence

from nbshm.failures.stacks import (
    Dump,
    RankStack,
    Reader,
    frames_of,
    frames_of_other_threads,
    stacks_in_words,
)
from nbshm.failures.waits import TAKER, what_it_waits_for
from nbshm.words import listed


def about_stillness(stacks: Sequence[RankStack], *, may_be_fed: bool) -> str | None:
    """Say that ranks which do nothing wait for each other; None if one may yet be woken, or sleeps.

    `may_be_fed`: other processes than the ranks may put something into their queues.
    """
    wakers = {stack.waits_for.waker if stack.waits_for else "anyone" for stack in stacks}
    if not stacks or "anyone" in wakers or ("processes" in wakers and may_be_fed):
        return None
    return "\n".join(
        [
            "This looks like a deadlock: each rank waits, and none is left to wake another.",
            *stacks_in_words(stacks),
        ]
    )


def about_lingering(dump: Dump | None, reader: Reader) -> str | None:
    """Say what keeps a rank's process from ending after its result; None if nothing of the person's does."""
    if dump and what_it_waits_for(frames_of(dump, reader)) is TAKER:
        return (
            f"it has finished, and waits for {TAKER.what}. Take it in another rank, or in the notebook "
            "while the ranks run (background=job)."
        )
    others = frames_of_other_threads(dump, reader) if dump else []
    if not others:
        return None
    places = listed([next(frame.place for frame in reversed(frames) if frame.cell) for frames in others])
    return f"it has finished, and waits for a thread that its code started and that still runs: {places}."
