"""What a scope uses of the scopes around it.

Code is walked in the order in which it runs, and only a use of a name that is not settled by then (see
`nbshm.definitions.flow`) leaves the scope. What the body of a function uses is used when the function is
called, and that isn't before its name is mentioned.
"""

# ruff: noqa: D102, N802  # the methods of a visitor are named after nodes, which says all there is to say

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from nbshm.definitions.annotations import expression_names, quoted_names
from nbshm.definitions.bindings import (
    Bindings,
    Function,
    defaults,
    parameter_names,
    parameters,
    scope_bindings,
    type_parameter_names,
    type_parameters,
)
from nbshm.definitions.flow import Flow
from nbshm.definitions.uses import Use, dotted_path, mangled

# From Python 3.14 on an annotation is evaluated when somebody asks for it, if ever.
_ANNOTATIONS_ARE_LAZY = sys.version_info >= (3, 14)

# What Python binds before the first statement of a class body.
_CLASS_NAMES = frozenset({"__module__", "__qualname__"})


class Scope(Flow):
    """A scope whose uses of outer names are collected in `uses`; each kind of scope is a subclass.

    `annotated` are names in annotations that are not evaluated, or are quoted.
    """

    def __init__(self, bindings: Bindings, *, settled: frozenset[str], postponed: bool) -> None:
        super().__init__(bindings, settled=settled)
        self.postponed = postponed
        self.uses: list[Use] = []
        self.annotated: set[str] = set()
        self.class_name: str | None = None
        self._declared_global = bindings.declared_global

    def use(self, use: Use) -> None:
        """Note a use of a name, unless the scope itself settles what the name means."""
        if use.name not in self.settled:
            self.uses.append(use)

    def absorb(self, uses: Iterable[Use]) -> None:
        """Take in what a nested scope that runs now uses of this one, or of those around it."""
        for use in uses:
            self.use(use)

    def postpone(self, name: str, uses: Sequence[Use]) -> None:
        """Take in what the body of the definition called `name` uses, which runs when it is called."""
        del name
        self.absorb(uses)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Store):
            self._use_path(node.id, node)
        if not isinstance(node.ctx, ast.Load):
            self.bind(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = dotted_path(node)
        if path is None:
            self.generic_visit(node)
        else:
            self._use_path(path, node)

    def _use_path(self, path: str, node: ast.expr) -> None:
        declared_global = path.partition(".")[0] in self._declared_global
        self.use(Use(path=path, line=node.lineno, declared_global=declared_global))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.run([node.value, node.target])

    def visit_Assign(self, node: ast.Assign) -> None:
        self.run([node.value, *node.targets])

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._use_path(node.target.id, node.target)
        self.run([node.value, node.target])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.annotate(node.annotation)
        self.run([node.value] if node.value else [])
        if node.value is not None or not isinstance(node.target, ast.Name):
            self.visit(node.target)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.run(defaults(node.args))
        body = self._nested(FunctionScope, settled=parameter_names(node.args))
        body.visit(node.body)
        # A lambda in a class body can't make use of the class before it is there.
        self.absorb(use for use in body.uses if use.name != self.class_name)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        self._comprehend(node.generators, [node.elt])

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self.visit_ListComp(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self.visit_ListComp(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehend(node.generators, [node.key, node.value])

    def _comprehend(self, generators: list[ast.comprehension], elements: list[ast.expr]) -> None:
        first, *others = generators
        self.visit(first.iter)
        targets = scope_bindings(generator.target for generator in generators).own
        inside = self._nested(FunctionScope, settled=targets)
        inside.run([first.target, *first.ifs])
        for generator in others:
            inside.run([generator.iter, generator.target, *generator.ifs])
        inside.run(elements)
        self.absorb(inside.uses)
        self.touched |= inside.touched - targets

    def visit_FunctionDef(self, node: Function) -> None:
        self.run([*node.decorator_list, *defaults(node.args)])
        self.annotate_signature(node)
        self.bind(node.name)
        own_names = parameter_names(node.args) | type_parameter_names(node)
        body = self._nested(FunctionScope, node.body, settled=own_names)
        body.run(node.body)
        # Python itself puts `__class__` into the functions of a class.
        self.postpone(node.name, [use for use in body.uses if use.name != "__class__"])

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.run(node.decorator_list)
        self._run_generic(node, [*node.bases, *node.keywords])
        body = self._nested(ClassScope, node.body, settled=_CLASS_NAMES | type_parameter_names(node))
        body.class_name = node.name
        body.run(node.body)
        self.annotated |= body.annotated
        self.absorb(mangled(body.uses, node.name))
        self.bind(node.name)
        self.postpone(node.name, list(mangled(body.later, node.name)))

    def visit_TypeAlias(self, node: ast.AST) -> None:
        # The class of this node exists from Python 3.12 on.
        name, value = (child for field, child in ast.iter_fields(node) if field in {"name", "value"})
        self.visit(name)
        self._run_generic(node, [value])

    def _run_generic(self, node: ast.AST, parts: Iterable[ast.AST]) -> None:
        """Visit those parts of a definition that see its type parameters."""
        if not type_parameters(node):
            self.run(parts)
            return
        scope = self._nested(FunctionScope, settled=type_parameter_names(node))
        scope.run([*type_parameters(node), *parts])
        self.absorb(scope.uses)

    def annotate_signature(self, node: Function) -> None:
        """Visit the annotations of a function's parameters and of what it returns."""
        annotations = [each.annotation for each in parameters(node.args)]
        for annotation in (*annotations, node.returns):
            if annotation is not None:
                self.annotate(annotation, type_names=type_parameter_names(node))

    def annotate(self, annotation: ast.expr, *, type_names: frozenset[str] = frozenset()) -> None:
        """Visit an annotation where it is evaluated; of one that isn't, remember the names in it."""
        if self.postponed or _ANNOTATIONS_ARE_LAZY:
            self.annotated |= expression_names(annotation) - type_names
            return
        self.annotated |= quoted_names(annotation) - type_names
        scope = self._nested(FunctionScope, settled=type_names) if type_names else self
        scope.visit(annotation)
        if scope is not self:
            self.absorb(scope.uses)

    def _nested(self, kind: type[_S], body: Sequence[ast.AST] = (), *, settled: frozenset[str]) -> _S:
        return kind(scope_bindings(body), settled=settled, postponed=self.postponed)


_S = TypeVar("_S", bound=Scope)


class FunctionScope(Scope):
    """A function, lambda or comprehension: a name that it binds anywhere is its own everywhere."""

    def __init__(self, bindings: Bindings, *, settled: frozenset[str], postponed: bool) -> None:
        super().__init__(bindings, settled=settled | bindings.own, postponed=postponed)

    def absorb(self, uses: Iterable[Use]) -> None:
        for use in uses:
            if use.declared_global:
                self.uses.append(use)
            else:
                self.use(use)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        # Python doesn't evaluate the annotations of local variables, nor keep them.
        self.run([*([node.value] if node.value else []), node.target])


class ClassScope(Scope):
    """A class body: it runs at once, and the functions in it don't see its names."""

    def __init__(self, bindings: Bindings, *, settled: frozenset[str], postponed: bool) -> None:
        super().__init__(bindings, settled=settled, postponed=postponed)
        self.later: list[Use] = []

    def absorb(self, uses: Iterable[Use]) -> None:
        self.uses.extend(uses)

    def postpone(self, name: str, uses: Sequence[Use]) -> None:
        del name
        self.later.extend(uses)


class ModuleScope(Scope):
    """The top level of a cell: what it uses and hasn't settled, it takes from the notebook."""

    def __init__(self, bindings: Bindings, *, postponed: bool) -> None:
        super().__init__(bindings, settled=frozenset(), postponed=postponed)
        self.certain: set[str] = set()
        self.paths: set[str] = set()
        self._bodies: dict[str, list[Use]] = {}

    def use(self, use: Use) -> None:
        for each in (use, *self._uses_when_called(use.name)):
            self._note(each)

    def postpone(self, name: str, uses: Sequence[Use]) -> None:
        self._bodies.setdefault(name, []).extend(uses)

    def visit_FunctionDef(self, node: Function) -> None:
        super().visit_FunctionDef(node)
        if node.decorator_list:  # a decorator may call at once what it is given
            self.absorb(self._bodies[node.name])

    def call_everything(self) -> None:
        """Take in the bodies of all definitions: what the cell leaves behind may still call them."""
        for uses in self._bodies.values():
            for use in uses:
                self._note(use)

    def _note(self, use: Use) -> None:
        self.paths.add(use.path)
        if use.name not in self.settled:
            self.uses.append(use)
        if use.name not in self.touched:
            self.certain.add(use.name)

    def _uses_when_called(self, name: str) -> Iterator[Use]:
        seen, names = set(), [name]
        while names:
            name = names.pop()
            if name in seen or name not in self._bodies:
                continue
            seen.add(name)
            yield from self._bodies[name]
            names.extend(use.name for use in self._bodies[name])
