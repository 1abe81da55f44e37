"""Kinds of values with memory: how one is made, arrives, is written to from two ranks, and looks then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kernels import Kernel

BOTH = "list(it[:3]) == [1, 1, 0]"
WRITE = "it[rank] = 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """`make` gives the value, which the other fields call `it`.

    `arrives` is true in each rank at first, `holds` when both have run `write`: there and in the notebook.
    """

    name: str
    make: str
    arrives: str = "True"
    write: str = WRITE
    holds: str = BOTH


def problems_of(kernel: Kernel, kinds: Iterable[Kind], *, setup: str) -> dict[str, str]:
    """Try all kinds in one parallel cell; return what went wrong, by name."""
    kinds = list(kinds)
    kernel.run(f"{TOOLS}\n{setup}").check()
    values = ", ".join(f"{kind.name!r}: {kind.make}" for kind in kinds)
    kernel.run(f"values = {{{values}}}").check()
    phases = "\nnbshm.barrier()\n".join(
        "\n".join(_step(kind, step) for kind in kinds)
        for step in ("assert {0.arrives}", "{0.write}", "assert {0.holds}")
    )
    kernel.run(f"%%parallel nprocs=2 out=found\n{TOOLS}\nproblems = {{}}\n{phases}\nfound = problems").check()
    after = "\n".join(_step(kind, "assert {0.holds}") for kind in kinds)
    kernel.run(f"problems = {{}}\n{after}").check()
    return kernel.value("{**problems, **{f'{k} in rank 0': v for k, v in found[0].items()}, **found[1]}")


TOOLS = """
import collections, dataclasses, types, warnings
import numpy as np
import torch
from torch import nn
warnings.simplefilter("ignore")
"""


def _step(kind: Kind, step: str) -> str:
    body = "\n    ".join(step.format(kind).splitlines() or ["pass"])
    return (
        f"it = values[{kind.name!r}]\ntry:\n    {body}\n"
        f"except Exception as error:\n    problems.setdefault({kind.name!r}, f'{{error!r}} at ' + {step!r})"
    )
