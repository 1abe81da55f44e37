"""What is said of a run before it starts, of all that is known by then."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePath
from typing import Any

from nbshm.attributes import found_at
from nbshm.memory.generators import is_seed_sequence, places_of_generators
from nbshm.parts import Place
from nbshm.processes.fork_limits import left_behind
from nbshm.runs.departures import Departure
from nbshm.runs.private_writes import private_writes
from nbshm.runs.tasks import Task
from nbshm.words import listed, with_article


def foreword(task: Task, departure: Departure, namespace: dict[str, Any]) -> Iterator[str]:
    """Yield the lines."""
    yield from task.options.warnings
    yield from _about_private_writes(private_writes(task.analysis.writes, namespace, departure.names))
    if task.options.nprocs > 1:
        yield from _about_gradients({name: namespace.get(name) for name in sorted(departure.names)})
        places = _places_of_generators(task, departure, namespace)
        yield from about_generators(places, task.analysis.seeded, namespace)
    if task.options.start_method == "fork":
        yield from about_lost_threads(left_behind())
    yield from _about_rendezvous(departure.job.surroundings.environment, task.options.nprocs)
    yield from _about_edited(departure.edited)
    yield from _about_unshared(departure.unshared)
    if task.options.background:
        yield from _about_mirrors(departure.mirrored)


def _places_of_generators(task: Task, departure: Departure, namespace: dict[str, Any]) -> list[Place]:
    """Return the random generators of which each rank gets a copy, with the paths to them.

    Who calls `nbshm.spawn` knows that all ranks are given the same arguments.
    """
    names = departure.names - (task.analysis.needs.names.keys() if task.body.is_call else set())
    values = {name: namespace[name] for name in sorted(names) if name in namespace}
    sequences = list(_seed_sequences(task.analysis.spawned_alike, values))
    if task.options.start_method == "fork":  # what it sends is memory alone
        return [*places_of_generators(values), *sequences]
    met = {id(generator) for generator in departure.generators}
    found = islice(places_of_generators(values, lambda value: id(value) in met), len(met))
    return [*found, *sequences]


def _seed_sequences(paths: Iterable[str], values: Mapping[str, Any]) -> Iterator[Place]:
    """Yield numpy's seed sequences among what stands at these paths."""
    places = ((path, found_at(path, values)) for path in sorted(paths))
    return (place for place in places if is_seed_sequence(place[1]))


def _about_private_writes(private: Mapping[str, str]) -> Iterator[str]:
    """Say what the cell writes into that each rank has its own of; the kinds are by what it is called."""
    if private:
        what = listed([f"{name} ({with_article(kind)})" for name, kind in private.items()])
        yield (
            f"What the cell writes into {what} stays in the ranks. "
            f"To get it back, write into an array or a tensor, end the cell in {', '.join(private)}, "
            "or use out= for what the cell assigns."
        )


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


def about_lost_threads(owners: Sequence[str]) -> Iterator[str]:
    """Say what the ranks have without its threads."""
    if owners:
        yield (
            f"Threads do not survive a fork, and the notebook has some of {listed(owners)}: a rank that uses "
            "them may wait for ever. Use start_method=forkserver or spawn."
        )


def _about_rendezvous(environment: Mapping[str, str], nprocs: int) -> Iterator[str]:
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


def _about_edited(files: Iterable[str]) -> Iterator[str]:
    """Say which files the ranks run as they are now."""
    for file in files:
        yield (
            f"{PurePath(file).name} has changed since the notebook imported it: the ranks run the file as it "
            "is now. To run the same here, reload it (importlib.reload, %autoreload) or restart the kernel."
        )


def _about_unshared(names: Iterable[str]) -> Iterator[str]:
    """Say what forked ranks don't share."""
    for name in names:
        yield (
            f"{name} can't be sent, so each forked rank has a copy of its own of what can't move in it: "
            f"what it writes there stays there. nbshm.share({name}) moves it ahead, or says why not."
        )


def _about_mirrors(mirrored: Iterable[str]) -> Iterator[str]:
    """Say under which names there is memory that a background run only brings back when it ends."""
    names = list(dict.fromkeys(mirrored))  # a dictionary's name stands for each of its arrays
    if names:
        yield (
            f"{listed(names)} {'is' if len(names) == 1 else 'are'} mirrored (%shm_status says why): "
            "what the ranks write there is copied back when the run ends, "
            "over what the notebook writes there until then."
        )


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
