"""Random cells are run, and what they really read of the notebook is compared with what was foreseen."""

from __future__ import annotations

import ast
import contextlib
import random
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from nbshm.definitions.names import cell_names

NAMES = "abcdef"


class Watched(dict[str, Any]):
    """A namespace that remembers which names were read before they were bound or deleted."""

    def __init__(self, provided: dict[str, Any]) -> None:
        super().__init__(provided)
        self.original = set(NAMES)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        if name in self.original:
            self.read.add(name)
        return super().__getitem__(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self.original.discard(name)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        if name in self.original:
            self.read.add(name)
        self.original.discard(name)
        super().__delitem__(name)


class Writer:
    """Writes random cells; every choice that running them takes is drawn by the cell itself."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311  # nothing is kept secret here

    def name(self) -> str:
        return self.draw.choice(NAMES)

    def block(self, depth: int, *, in_loop: bool = False) -> str:
        lines = [self.statement(depth, in_loop=in_loop) for _ in range(self.draw.randint(1, 3))]
        return textwrap.indent("\n".join(lines), "    ")

    def statement(self, depth: int, *, in_loop: bool) -> str:
        simple = [self.assignment, self.reading, self.walrus, self.deletion, self.augmented, self.class_body]
        jumps = [lambda: "raise KeyError", *([lambda: "break", lambda: "continue"] if in_loop else [])]
        if depth == 0 or self.draw.random() < 0.4:
            return self.draw.choice(self.draw.choice([simple, simple, simple, jumps]))()
        blocks = [self.if_else, self.for_loop, self.while_loop, self.endless, self.try_except, self.finally_]
        chosen = self.draw.choice([*blocks, self.with_suppress, self.matching])
        return chosen(depth - 1, in_loop=in_loop)

    def assignment(self) -> str:
        return f"{self.name()} = {self.name()} if maybe() else 1"

    def reading(self) -> str:
        return f"[{self.name()} for {self.name()} in ({self.name()}, 1)]"

    def walrus(self) -> str:
        return f"maybe() and ({self.name()} := {self.name()}) or ({self.name()} := 1)"

    def deletion(self) -> str:
        return f"del {self.name()}"

    def augmented(self) -> str:
        return f"{self.name()} += 1"

    def class_body(self) -> str:
        return f"class {self.name()}:\n    {self.name()} = {self.name()}\n    {self.name()} = {self.name()}"

    def if_else(self, depth: int, *, in_loop: bool) -> str:
        return (
            f"if maybe():\n{self.block(depth, in_loop=in_loop)}\nelse:\n{self.block(depth, in_loop=in_loop)}"
        )

    def for_loop(self, depth: int, *, in_loop: bool) -> str:
        iterable = self.draw.choice(["rounds()", "range(2)", "(1, 2)", "[]"])
        orelse = self.block(depth, in_loop=in_loop)
        return f"for {self.name()} in {iterable}:\n{self.block(depth, in_loop=True)}\nelse:\n{orelse}"

    def while_loop(self, depth: int, *, in_loop: bool) -> str:
        orelse = self.block(depth, in_loop=in_loop)
        return f"while maybe():\n{self.block(depth, in_loop=True)}\nelse:\n{orelse}"

    def endless(self, depth: int, *, in_loop: bool) -> str:
        del in_loop
        return f"while True:\n    if maybe(): break\n{self.block(depth, in_loop=True)}"

    def try_except(self, depth: int, *, in_loop: bool) -> str:
        blocks = [self.block(depth, in_loop=in_loop) for _ in range(3)]
        as_name = self.draw.choice(["", f" as {self.name()}"])
        return "try:\n    fail()\n{}\nexcept Exception{}:\n{}\nelse:\n{}".format(
            blocks[0], as_name, *blocks[1:]
        )

    def finally_(self, depth: int, *, in_loop: bool) -> str:
        body, final = self.block(depth, in_loop=in_loop), self.block(depth, in_loop=in_loop)
        return f"try:\n    fail()\n{body}\nfinally:\n{final}"

    def with_suppress(self, depth: int, *, in_loop: bool) -> str:
        return f"with suppress(Exception):\n    fail()\n{self.block(depth, in_loop=in_loop)}"

    def matching(self, depth: int, *, in_loop: bool) -> str:
        last = self.draw.choice(["_", "_ if maybe()", self.name()])
        blocks = [self.block(depth, in_loop=in_loop) for _ in range(2)]
        return "match rounds():\n  case [{}]:\n{}\n  case {}:\n{}".format(
            self.name(), textwrap.indent(blocks[0], "  "), last, textwrap.indent(blocks[1], "  ")
        )


def reads_of_runs(text: str, seed: int) -> Iterator[set[str]]:
    """What each of several runs of a cell reads of the notebook, whose choices differ."""
    code = compile(text, "<random cell>", "exec", dont_inherit=True)
    for run in range(12):
        draw = random.Random(f"{seed} {run}")  # noqa: S311  # nothing is kept secret here
        patience = iter(range(200))

        def maybe(draw: random.Random = draw, patience: Iterator[int] = patience) -> bool:
            next(patience)  # a loop that goes on for too long ends the run
            return draw.random() < 0.5

        def fail(draw: random.Random = draw) -> None:
            if draw.random() < 0.3:
                raise ValueError

        provided = {"maybe": maybe, "fail": fail, "rounds": lambda draw=draw: [1] * draw.randint(0, 2)}
        watched = Watched({**provided, "suppress": contextlib.suppress, **dict.fromkeys(NAMES, 1)})
        with contextlib.suppress(Exception):
            exec(code, dict(provided), watched)  # noqa: S102  # that is what is watched
        yield watched.read


@pytest.mark.parametrize("seed", range(150))
def test_no_cell_reads_what_was_not_foreseen(seed: int):
    writer = Writer(seed)
    text = "\n".join(writer.statement(3, in_loop=False) for _ in range(6))
    foreseen = cell_names(ast.parse(text)).reads
    for read in reads_of_runs(text, seed):
        assert read <= foreseen, text


@pytest.mark.parametrize(
    ("cell", "is_read"),
    [
        ("x = 1\nx", False),
        ("if c: x = 1\nelse: x = 2\nx", False),
        ("if c: x = 1\nx", True),
        ("for i in range(3): x = 1\nx", False),
        ("for i in range(n): x = 1\nx", True),
        ("while True:\n    x = 1\n    if c: break\nx", False),
        ("try: x = 1\nexcept E: pass\nx", True),
        ("try: x = 1\nexcept E: raise\nx", False),
        ("try: pass\nfinally: x = 1\nx", False),
        ("with lock: x = 1\nx", False),
        ("with suppress(E): x = 1\nx", True),
        ("x = 1\ndel x\nx", False),
        ("match c:\n    case _: x = 1\nx", False),
        ("match c:\n    case _ if d: x = 1\nx", True),
        ("def f(): x\nx = 1\nf()", False),
        ("def f(): x\nf()\nx = 1", True),
    ],
)
def test_a_name_is_read_unless_every_path_has_settled_it(cell: str, is_read: bool):  # noqa: FBT001  # a parameter
    assert ("x" in cell_names(ast.parse(cell)).reads) is is_read
