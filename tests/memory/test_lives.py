"""The life of a notebook: arrays and tensors made, viewed, held, dropped, shared and written to, in cells.

Each step is done twice: in a notebook whose parallel cells run in workers, and serially. After each, all that
is held must be the same: contents, layouts, and who shares memory with whom.

`NBSHM_SOAK_LIVES` says how many a soak tries (3 000).
"""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import pickle
import types
from typing import Any

import numpy as np
import pytest
import torch
from alias_graphs import BOXES, NEW, OF_ARRAYS, OF_TENSORS, address, flat, make, plain, write
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from memory_notebook import Child, Notebook

import nbshm
from nbshm.errors import CannotSend
from nbshm.memory.ownership.extents import extent
from nbshm.sharing import sharing_for

CHOICES = st.integers(0, 40)
SEVERAL = st.lists(CHOICES, min_size=1, max_size=4)
COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
}


class Life(RuleBasedStateMachine):
    """One notebook with workers, and one without, that do the same."""

    def __init__(self, children: list[Child]) -> None:
        super().__init__()
        self.notebook = Notebook(children)
        self.serial: dict[str, Any] = {}
        self.count = 0
        for kind in ("array", "tensor"):
            self.make(kind, 0)

    @property
    def both(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.notebook.namespace, self.serial

    def name(self, choice: int, *kinds: type) -> str:
        """Return one of the names, of those whose values are of some kind."""
        names = [name for name, value in self.serial.items() if isinstance(value, kinds or object)]
        return names[choice % len(names)]

    def new_name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    @rule(kind=st.sampled_from([*NEW]), number=CHOICES)
    def make(self, kind, number):
        name = self.new_name()
        for names in self.both:
            names[name] = NEW[kind](number)

    @precondition(lambda self: self.has(np.ndarray))
    @rule(kind=st.sampled_from([*OF_ARRAYS]), choice=CHOICES, number=CHOICES)
    def look_at_array(self, kind, choice, number):
        self.look(kind, self.name(choice, np.ndarray), number)

    @precondition(lambda self: self.has(torch.Tensor))
    @rule(kind=st.sampled_from([*OF_TENSORS]), choice=CHOICES, number=CHOICES)
    def look_at_tensor(self, kind, choice, number):
        self.look(kind, self.name(choice, torch.Tensor), number)

    def look(self, kind: str, of: str, number: int) -> None:
        name = self.new_name()
        for names in self.both:
            names[name] = make(kind, names[of], names[of], number)

    def has(self, kind: type) -> bool:
        return any(isinstance(value, kind) for value in self.serial.values())

    @precondition(lambda self: self.serial)
    @rule(kind=st.sampled_from([*BOXES]), first=CHOICES, second=CHOICES)
    def hold(self, kind, first, second):
        name, first, second = self.new_name(), self.name(first), self.name(second)
        for names in self.both:
            names[name] = BOXES[kind](names[first], names[second])

    @precondition(lambda self: self.serial)
    @rule(of=CHOICES, bound=CHOICES)
    def bind(self, of, bound):
        of, bound = self.name(of), self.name(bound)
        for names in self.both:
            names[bound] = names[of]

    @precondition(lambda self: self.serial)
    @rule(of=CHOICES, how=st.sampled_from([*COPIES]))
    def copy(self, of, how):
        name, of = self.new_name(), self.name(of)
        for names in self.both:
            names[name] = COPIES[how](names[of])

    @precondition(lambda self: self.serial)
    @rule(choices=SEVERAL)
    def drop(self, choices):
        for name in {self.name(choice) for choice in choices}:
            for names in self.both:
                del names[name]

    @precondition(lambda self: self.serial)
    @rule(choice=CHOICES)
    def show(self, choice):
        self.notebook.out[self.count] = self.notebook[self.name(choice)]

    @rule()
    def forget(self):
        self.notebook.out.clear()
        gc.collect()

    @precondition(lambda self: self.serial)
    @rule(choices=SEVERAL)
    def write(self, choices):
        for names in self.both:
            write(names, [self.name(choice) for choice in choices])

    @precondition(lambda self: self.serial)
    @rule(choice=CHOICES)
    def share(self, choice):
        name = self.name(choice)
        sharer = types.SimpleNamespace(
            segments=self.notebook.segments, mappings=lambda: [self.notebook.namespace, self.notebook.out]
        )
        refused = contextlib.suppress(CannotSend, TypeError)  # where something else holds it
        with sharing_for(sharer), refused:
            exec(f"nbshm.share({name})", {"nbshm": nbshm}, self.notebook.namespace)  # noqa: S102

    @precondition(lambda self: self.serial)
    @rule(first=SEVERAL, second=SEVERAL, fails=st.booleans())
    def run(self, first, second, fails):
        turns = [[self.name(choice) for choice in choices] for choices in (first, second)]
        self.notebook["turns"] = turns
        code = (
            "from alias_graphs import write\n"
            "result = {name: globals()[name] for name in turns[rank]}\n"
            f"write(result, turns[rank]); 1 / {1 - fails}"
        )
        try:
            results = self.notebook.run_in_turn(code, "turns", *sorted({*turns[0], *turns[1]}))
        except ZeroDivisionError:
            results = []
        del self.notebook.namespace["turns"]
        for names in turns:
            write(self.serial, names)
        for names, result in zip(turns, results, strict=False):
            for name in names:
                self.is_the_notebooks_own(result[name], self.notebook[name])

    def is_the_notebooks_own(self, result: Any, own: Any) -> None:
        for got, here in zip(flat(result), flat(own), strict=True):
            assert address(got) == address(here) or 0 in here.shape

    @precondition(lambda self: self.serial)
    @rule(choice=CHOICES)
    def keep_result(self, choice):
        of, name = self.name(choice), self.new_name()
        result = self.notebook.run(f"result = {of}", of)[0]
        views: dict[int, Any] = {}
        leaves = [views.setdefault(id(leaf), view(leaf)) for leaf in flat(self.serial[of])]
        self.notebook[name], self.serial[name] = flat(result), leaves

    @invariant()
    def all_is_the_same(self):
        real, serial = self.both
        assert plain(real) == plain(serial)
        assert overlaps(real) == overlaps(serial)

    def teardown(self):
        for names in self.both:
            names.clear()
        self.notebook.out.clear()
        self.notebook.segments.spares.clear()


def view(value: Any) -> Any:
    """Return another object over the same memory, as what comes back from a worker is."""
    return value.view() if isinstance(value, np.ndarray) else value.detach()


def overlaps(names: dict[str, Any]) -> list[tuple[str, str, int]]:
    """Return which values share memory, and how they lie to one another."""
    spans = []
    for name, value in names.items():
        for number, part in enumerate(flat(value)):
            if part.nbytes and 0 not in part.shape:
                spans.append((f"{name}.{number}", *span(part)))
    return [
        (one, other, begin - start)
        for one, begin, end in spans
        for other, start, stop in spans
        if one < other and begin < stop and start < end
    ]


def span(value: Any) -> tuple[int, int]:
    """Return where the elements of an array or a tensor begin and end."""
    if isinstance(value, np.ndarray):
        begin, nbytes = extent(value)
        return begin, begin + nbytes
    steps = sum((length - 1) * stride for length, stride in zip(value.shape, value.stride(), strict=True))
    return value.data_ptr(), value.data_ptr() + (steps + 1) * value.element_size()


def live(children: list[Child], *, examples: int) -> None:
    run_state_machine_as_test(
        lambda: Life(children),
        settings=settings(max_examples=examples, stateful_step_count=20, deadline=None),
    )


def test_a_notebook_that_runs_cells_in_workers_is_what_it_would_be_without(children: list[Child]):
    live(children, examples=15)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_notebooks_that_run_cells_in_workers_are_what_they_would_be_without(children: list[Child]):
    live(children, examples=int(os.environ.get("NBSHM_SOAK_LIVES", "3000")))
