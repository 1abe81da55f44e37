"""What nbshm has to say about a run in a line: before it starts, and about names after it failed."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from nbshm.attributes import found_at
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
from nbshm.options import Options
from nbshm.parts import Place
from nbshm.words import listed, with_article, without_colours

_MISSING = {
    "NameError": re.compile(r"name '(\w+)' is not defined"),
    "AttributeError": re.compile(r"module '__main__' has no attribute '(\w+)'"),
    "ImportError": re.compile(r"cannot import name '(\w+)' from '__main__'"),
}
_CUDA_AFTER_FORK = "Cannot re-initialize CUDA in forked subprocess"  # says torch
_MISSING_IN_A_TEXT = re.compile(r"local variable '(\w+)' is not defined")  # says pandas of `@x` in a query


def before_start(
    options: Options,
    names: AbstractSet[str],
    *,
    private: Mapping[str, str],
    namespace: Mapping[str, Any],
) -> Iterator[str]:
    """Yield what a person should know before the run starts.

    `private` are the kinds of what the cell writes into and each rank has its own of.
    """
    yield from options.warnings
    if private:
        what = listed([f"{name} ({with_article(kind)})" for name, kind in private.items()])
        yield (
            f"What the cell writes into {what} stays in the ranks. "
            f"To get it back, write into an array or a tensor, end the cell in {', '.join(private)}, "
            "or use out= for what the cell assigns."
        )
    if options.nprocs > 1:
        yield from _about_gradients({name: namespace.get(name) for name in sorted(names)})


def _about_gradients(values: Mapping[str, Any]) -> Iterator[str]:
    """Say which models have gradients that the ranks would share."""
    for name in [name for name, value in values.items() if _has_gradients(value)]:
        yield (
            f"{name} has gradients already, so the ranks share them and write over each other's. "
            f"Call {name}.zero_grad() before the cell, or first in it: then each rank has its own."
        )


def about_generators(
    places: Collection[Place], seeded: Collection[str], namespace: Mapping[str, Any]
) -> Iterator[str]:
    """Say in a line which generators are the same in all ranks, and in one which each item has of its own.

    `seeded` is what the cell gives each rank a stream of, as its code calls that.
    """
    left = [place for place in places if place[0] not in seeded]
    numbers = Counter(_of_any_item(path) for path, _ in left)
    shared = [(path, value) for path, value in left if numbers[_of_any_item(path)] == 1]
    if shared:
        told = listed([path for path, _ in shared])
        remedy = _remedy_for_generators(shared, namespace)
        yield f"Every rank gets the same random numbers from {told}. {remedy} {_again(shared)}"
    own = [(path, value) for path, value in left if numbers[_of_any_item(path)] > 1]
    if own:  # a loop may share the items out among the ranks
        told = listed([path for path, _ in own])
        yield f"The ranks have copies of {told}. {_again(own)} Make new ones before it."


def about_rendezvous(environment: Mapping[str, str], nprocs: int) -> Iterator[str]:
    """Say which variables for `torch.distributed` of the person's own, which win, hide the ranks'."""
    wrong = [name for name in ("RANK", "LOCAL_RANK") if name in environment]
    sizes = ("WORLD_SIZE", "LOCAL_WORLD_SIZE")
    wrong += [name for name in sizes if environment.get(name, str(nprocs)) != str(nprocs)]
    if wrong and nprocs > 1:
        found = listed([f"{name}={environment[name]}" for name in wrong], most=len(wrong))
        remedy = ", ".join(f'os.environ["{name}"]' for name in wrong)
        yield (
            f"The notebook's os.environ has {found}, which each of the {nprocs} ranks finds instead of its "
            f"own (torch.distributed reads that). Before the cell: del {remedy}."
        )


def about_edited(files: Iterable[str]) -> Iterator[str]:
    """Say which files the ranks run as they are now."""
    for file in files:
        yield (
            f"{PurePath(file).name} has changed since the notebook imported it: the ranks run the file as it "
            "is now. To run the same here, reload it (importlib.reload, %autoreload) or restart the kernel."
        )


def about_unshared(names: Iterable[str]) -> Iterator[str]:
    """Say what forked ranks don't share."""
    for name in names:
        yield (
            f"{name} can't be sent, so each forked rank has a copy of its own of what can't move in it: "
            f"what it writes there stays there. nbshm.share({name}) moves it ahead, or says why not."
        )


def about_mirrors(mirrored: Iterable[str]) -> Iterator[str]:
    """Say under which names there is memory that a background run only brings back when it ends."""
    names = list(dict.fromkeys(mirrored))  # a dictionary's name stands for each of its arrays
    if names:
        yield (
            f"{listed(names)} {'is' if len(names) == 1 else 'are'} mirrored (%shm_status says why): "
            "what the ranks write there is copied back when the run ends, "
            "over what the notebook writes there until then."
        )


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


def _of_any_item(path: str) -> str:
    return re.sub(r"\[\d+\]", "[]", path)


def _again(places: Sequence[Place]) -> str:
    them = "it" if len(places) == 1 else "them"
    return f"The next parallel cell starts {them} again where the notebook left {them}."


def _remedy_for_generators(places: Sequence[Place], namespace: Mapping[str, Any]) -> str:
    path, value = places[0]
    if len(places) == 1 and hasattr(value, "spawn") and found_at(path, namespace) is value:
        return f"Use {path}.spawn(nprocs)[rank] in the cell."
    return "Seed one for each rank in the cell."


def _has_gradients(value: Any) -> bool:
    """Tell whether a value is a model of torch with gradients."""
    torch = sys.modules.get("torch")
    if torch is None or not issubclass(type(value), torch.nn.Module):
        return False
    return any(parameter.grad is not None for parameter in value.parameters())
