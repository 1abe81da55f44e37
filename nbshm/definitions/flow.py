"""Which names are settled where: control flow through the statements of one scope.

A name is *settled* once the scope has bound or deleted it on every path so far, so that what it meant before
can no longer be seen. Statements are visited in the order in which they run.
"""

# ruff: noqa: D102  # the methods of a visitor are named after nodes, which says all there is to say

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nbshm.definitions.bindings import Bindings, imported_name

# Context managers that swallow exceptions by trade, so that what their body binds is not certain afterwards.
# Any other could as well, but then hardly a name bound under `with torch.no_grad():` would ever be certain.
_SUPPRESSING = frozenset({"suppress"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """What is settled wherever a loop is left by `break`, or goes on by `continue`."""

    breaks: list[frozenset[str]] = field(default_factory=list)
    continues: list[frozenset[str]] = field(default_factory=list)


class Flow(ast.NodeVisitor):
    """Visits the statements of a scope and keeps `settled` true for the place that is being visited."""

    def __init__(self, bindings: Bindings, *, settled: frozenset[str]) -> None:
        self.settled = settled
        self.touched = set(settled)
        self.star_imports: list[str] = []
        # Where code can't be reached everything counts as settled: where paths meet, the others decide.
        self._unreachable = settled | bindings.own
        self._elsewhere = bindings.declared_global | bindings.declared_nonlocal
        self._loops: list[Loop] = []

    def bind(self, name: str | None) -> None:
        """Note that `name` is bound (or deleted) here."""
        if name is None:
            return
        self.touched.add(name)
        if name not in self._elsewhere:
            self.settled |= {name}

    def run(self, nodes: Iterable[ast.AST]) -> None:
        """Visit nodes that run one after the other."""
        for node in nodes:
            self.visit(node)

    def perhaps(self, nodes: Iterable[ast.AST]) -> None:
        """Visit nodes that may be skipped."""
        before = self.settled
        self.run(nodes)
        self.settled = before

    def branch(self, *branches: Sequence[ast.AST]) -> None:
        """Visit branches of which exactly one runs."""
        before, ends = self.settled, []
        for each in branches:
            self.settled = before
            self.run(each)
            ends.append(self.settled)
        self.settled = frozenset.intersection(*ends)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.bind(imported_name(alias))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.names[0].name == "*":
            self.star_imports.append("." * node.level + (node.module or ""))
            return
        for alias in node.names:
            self.bind(imported_name(alias))

    def visit_Raise(self, node: ast.Raise) -> None:
        self.generic_visit(node)
        self.settled = self._unreachable

    def visit_Return(self, node: ast.Return) -> None:
        self.generic_visit(node)
        self.settled = self._unreachable

    def visit_Break(self, _: ast.Break) -> None:
        self._loops[-1].breaks.append(self.settled)
        self.settled = self._unreachable

    def visit_Continue(self, _: ast.Continue) -> None:
        self._loops[-1].continues.append(self.settled)
        self.settled = self._unreachable

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self.branch(node.body, node.orelse)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        self.branch([node.body], [node.orelse])

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.visit(node.values[0])
        self.perhaps(node.values[1:])

    def visit_Compare(self, node: ast.Compare) -> None:
        self.run([node.left, node.comparators[0]])
        self.perhaps(node.comparators[1:])

    def visit_Assert(self, node: ast.Assert) -> None:
        # Under `python -O` nothing of it runs.
        self.perhaps([node.test, *([node.msg] if node.msg else [])])

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        branches: list[list[ast.AST]] = [[case] for case in node.cases]
        self.branch(*branches, *([] if _takes_anything(node.cases[-1]) else [[]]))

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self.generic_visit(node)
        self.bind(node.name)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self.bind(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.generic_visit(node)
        self.bind(node.rest)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        before = self.settled
        loop, after_body = self._loop([node.target, *node.body])
        self.settled = after_body if _runs_at_least_once(node.iter) else before
        self._leave(loop, node.orelse)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        self.visit_For(node)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        before = self.settled
        loop, _ = self._loop(node.body)
        self.settled = self._unreachable if _is_always_true(node.test) else before
        self._leave(loop, node.orelse)

    def _loop(self, body: Sequence[ast.AST]) -> tuple[Loop, frozenset[str]]:
        loop = Loop()
        self._loops.append(loop)
        self.run(body)
        self._loops.pop()
        return loop, self.settled.intersection(*loop.continues)

    def _leave(self, loop: Loop, orelse: Sequence[ast.stmt]) -> None:
        self.run(orelse)
        self.settled = self.settled.intersection(*loop.breaks)

    def visit_Try(self, node: ast.Try) -> None:
        # A handler, and `finally`, may be reached from before the first statement of the body.
        before = self.settled
        self.run([*node.body, *node.orelse])
        ends = [self.settled]
        for handler in node.handlers:
            self.settled = before
            self.visit(handler)
            ends.append(self.settled)
        self.settled = before
        self.run(node.finalbody)
        self.settled |= frozenset.intersection(*ends)

    def visit_TryStar(self, node: ast.Try) -> None:
        self.visit_Try(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.run([node.type] if node.type else [])
        self.bind(node.name)
        self.run(node.body)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        self.run(node.items)
        if any(_may_suppress(item.context_expr) for item in node.items):
            self.perhaps(node.body)
        else:
            self.run(node.body)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> None:
        self.visit_With(node)


def _takes_anything(case: ast.match_case) -> bool:
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None


def _is_always_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _runs_at_least_once(iterable: ast.expr) -> bool:
    """Tell whether a loop over `iterable` certainly has a first round: `range(100)`, `("a", "b")`."""
    match iterable:
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(stop))], keywords=[]):
            return stop > 0
        case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]):
            return not isinstance(first, ast.Starred)
    return False


def _may_suppress(manager: ast.expr) -> bool:
    if not isinstance(manager, ast.Call):
        return False
    name = getattr(manager.func, "attr", getattr(manager.func, "id", None))
    return name in _SUPPRESSING
