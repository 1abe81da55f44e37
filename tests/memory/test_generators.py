"""Paths to random generators."""

from __future__ import annotations

import random
from collections import UserDict
from types import SimpleNamespace

import numpy as np
import pytest

from nbshm.memory.generators import places_of_generators, without_those_inside

RNG = np.random.default_rng(1)


def paths(**values: object) -> list[str]:
    return [path for path, _ in places_of_generators(values)]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (RNG, "x"),
        ([1, RNG], "x[1]"),
        (UserDict(a=(RNG,)), "x['a'][0]"),
        (SimpleNamespace(a={2: RNG}), "x.a[2]"),
        (RNG.random, "x.__self__"),
        (random.Random(1), "x"),  # noqa: S311
        (np.random.RandomState(1), "x"),
        (np.random.Philox(1), "x"),
        (type("Own", (random.Random,), {})(1), "x"),
    ],
)
def test_a_path_is_written_as_the_code_would_be(value, path):
    assert paths(x=value) == [path]


def test_a_generator_is_told_once_by_the_path_of_the_fewest_steps():
    assert paths(a=SimpleNamespace(rng=RNG), b=[RNG], rng=RNG) == ["rng"]


def test_what_makes_the_bits_of_another_is_left_out_beside_it():
    bits, state = np.random.PCG64(1), np.random.RandomState(1)
    rng = np.random.Generator(bits)
    inner = state.__reduce__()[1][0]
    assert without_those_inside([bits, rng, inner, state]) == (rng, state)
    assert without_those_inside([bits]) == (bits,)


def test_what_asks_the_system_for_each_number_is_no_generator():
    assert paths(x=random.SystemRandom()) == []


def test_what_is_a_librarys_or_draws_for_everybody_is_not_looked_into():
    assert paths(np=np, random=random, rand=np.random.rand, sample=random.sample) == []
