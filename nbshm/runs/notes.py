"""What nbshm has to say about a run in a line: while ranks stand still, and about names after it failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from nbshm.failures.reports import Raised, RankFailure
from nbshm.failures.stacks import (
    Dump,
    RankStack,
    Reader,
    frames_of,
    frames_of_other_threads,
    stacks_in_words,
)
from nbshm.failures.tracebacks import ExceptionReport
from nbshm.failures.waits import TAKER, what_it_waits_for
from nbshm.notebook.namespace import Notebook
from nbshm.words import listed, without_colours

_MISSING = {
    "NameError": re.compile(r"name '(\w+)' is not defined"),
    "AttributeError": re.compile(r"module '__main__' has no attribute '(\w+)'"),
    "ImportError": re.compile(r"cannot import name '(\w+)' from '__main__'"),
}
_CUDA_AFTER_FORK = "Cannot re-initialize CUDA in forked subprocess"  # says torch
_MISSING_IN_A_TEXT = re.compile(r"local variable '(\w+)' is not defined")  # says pandas of `@x` in a query


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


def with_hint(failure: RankFailure, sent: AbstractSet[str], notebook: Notebook) -> RankFailure:
    """Add to an error what the person can do about it in the notebook, where that is known."""
    if not isinstance(failure, Raised):
        return failure
    hint = _about_cuda(failure.report) or _about_missing_name(failure.report, sent, notebook)
    if hint is None:
        return failure
    report = replace(failure.report, rendered=f"{failure.report.rendered.rstrip()}\n{hint}")
    return replace(failure, report=report)


def _about_cuda(report: ExceptionReport) -> str | None:
    """Say why CUDA can't be used in a forked rank, though it was not initialised in the notebook."""
    if not report.message.startswith(_CUDA_AFTER_FORK):
        return None
    return (
        "The notebook has asked for its GPUs (torch.cuda.is_available() does that), and no process that is "
        "forked from it can use them then. Use start_method=forkserver or spawn."
    )


def _about_missing_name(report: ExceptionReport, sent: AbstractSet[str], notebook: Notebook) -> str | None:
    """Say where a name is that a rank misses: in the notebook, or gone with the ranks of a cell."""
    name = _missing_name(report)
    if name in notebook.namespace and name not in sent:
        return f"The notebook has {name!r}, but nothing in the cell shows that it is used. Add send={name}."
    if name in notebook.bound_in_ranks and name not in notebook.namespace:
        return (
            f"{notebook.bound_in_ranks[name]} bound {name!r} in its ranks only, which have ended. "
            f"Bind it (or import it) in a cell without %%parallel, in this one, or by out={name} there."
        )
    return None


def _missing_name(report: ExceptionReport) -> str | None:
    """Return the notebook's name that an error tells of, also one of code that takes names from texts."""
    if report.type_name == "KeyError" and "globals()" in without_colours(report.rendered):
        return report.message.strip("'\"")
    found = _MISSING.get(report.type_name, _MISSING_IN_A_TEXT).search(report.message)
    return found[1] if found else None
