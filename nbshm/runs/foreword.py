"""What is said of a run before it starts, of all that is known by then."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from nbshm.memory.generators import places_of_generators
from nbshm.parts import Place
from nbshm.runs import notes
from nbshm.runs.departures import Departure
from nbshm.runs.private_writes import private_writes
from nbshm.runs.tasks import Task


def foreword(task: Task, departure: Departure, namespace: dict[str, Any]) -> Iterator[str]:
    """Yield the lines."""
    private = private_writes(task.analysis.writes, namespace)
    yield from notes.before_start(task.options, departure.names, private=private, namespace=namespace)
    if task.options.nprocs > 1:
        places = _places_of_generators(task, departure, namespace)
        yield from notes.about_generators(places, task.analysis.seeded, namespace)
    yield from notes.about_rendezvous(departure.job.surroundings.environment, task.options.nprocs)
    yield from notes.about_edited(departure.edited)
    yield from notes.about_unshared(departure.unshared)
    if task.options.background:
        yield from notes.about_mirrors(departure.mirrored)


def _places_of_generators(task: Task, departure: Departure, namespace: dict[str, Any]) -> list[Place]:
    """Return the random generators of which each rank gets a copy, with the paths to them.

    Who calls `nbshm.spawn` knows that all ranks are given the same arguments.
    """
    names = departure.names - (task.analysis.needs.names.keys() if task.body.is_call else set())
    values = {name: namespace[name] for name in sorted(names) if name in namespace}
    if task.options.start_method == "fork":  # what it sends is memory alone
        return list(places_of_generators(values))
    met = {id(generator) for generator in departure.generators}
    return list(islice(places_of_generators(values, lambda value: id(value) in met), len(met)))
