"""Random generators that travel: which they are, and the paths to them."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

from nbshm.attributes import attribute
from nbshm.definitions.standard_objects import home_of_the_only_one
from nbshm.memory.ownership.functions import held_by
from nbshm.own_definitions import is_notebooks_class
from nbshm.parts import Place, parts, places


def is_generator_kind(kind: type) -> bool:
    """Tell whether a class is one of generators, of those libraries that are imported.

    What makes the bits for numpy's is one too; what asks the system for each number is none.
    """
    return issubclass(kind, _kinds()) and not issubclass(kind, random.SystemRandom)


def is_generator(value: Any) -> bool:
    """Tell whether each rank would have a copy of a generator: of that which draws for all it has its own."""
    return is_generator_kind(type(value)) and home_of_the_only_one(value) is None


def without_those_inside(generators: Collection[Any]) -> tuple[Any, ...]:
    """Return generators without those that make the bits of another one among them."""
    inner = {id(attribute(generator, "_bit_generator")) for generator in generators}
    return tuple(generator for generator in generators if id(generator) not in inner)


def is_seed_sequence(value: Any) -> bool:
    """Tell whether a value is what numpy's generators are seeded by."""
    numpy = sys.modules.get("numpy.random")
    return numpy is not None and issubclass(type(value), numpy.SeedSequence)


def _kinds() -> tuple[type, ...]:
    numpy, torch = sys.modules.get("numpy.random"), sys.modules.get("torch")
    of_numpy = (numpy.Generator, numpy.RandomState, numpy.BitGenerator) if numpy else ()
    return (random.Random, *of_numpy, *((torch.Generator,) if torch else ()))


def places_of_generators(
    values: Mapping[str, Any], is_wanted: Callable[[Any], bool] = is_generator
) -> Iterator[Place]:
    """Yield the generators that names lead to, each once, those behind the fewest steps first."""
    return (place for place in places(values, _parts) if is_wanted(place[1]))


def _parts(value: Any) -> Iterator[Place]:
    """Yield the parts of a value with how each is reached from it."""
    kind = type(value)
    if issubclass(kind, ModuleType):
        return
    if issubclass(kind, (staticmethod, classmethod)):
        yield "", value.__func__
    elif issubclass(kind, type):
        own = vars(value) if is_notebooks_class(value) else {}
        yield from ((f".{name}", part) for name, part in list(own.items()))
    elif isinstance(value, FunctionType):
        yield from ((f".{name}", part) for name, part in held_by(value))
    else:
        yield from parts(value)
