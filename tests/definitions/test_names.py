from __future__ import annotations

import argparse
import ast
import asyncio.base_events
import dataclasses
import enum
import inspect
import re
import sys
import typing
from pathlib import Path
from types import GenericAlias, ModuleType
from typing import ForwardRef

import pytest

from nbshm.definitions.bindings import scope_bindings
from nbshm.definitions.names import (
    Names,
    annotation_names,
    cell_names,
    code_attributes,
    code_names,
    default_names,
    definition_time_names,
)

CELLS = sorted((Path(__file__).parent.parent / "cells").glob("*.py"))
HEADER = re.compile(r"^# (\w+):(.*)\n", re.MULTILINE)


def headers(text: str) -> dict[str, str]:
    """The comments at the top of a cell file, which tell what is expected of it."""
    found = {}
    while match := HEADER.match(text):
        found[match[1]] = match[2].strip()
        text = text[match.end() :]
    return found


def shown(names: Names) -> dict[str, str]:
    return {
        "reads": " ".join(sorted(names.reads)),
        "perhaps": " ".join(sorted(names.perhaps_bound)),
        "binds": " ".join(sorted(names.binds)),
        "attributes": " ".join(sorted(names.attributes)),
        "annotated": " ".join(sorted(names.annotated)),
        "stars": " ".join(names.star_imports),
    }


def names_of(source: str) -> Names:
    return cell_names(ast.parse(source))


@pytest.mark.parametrize("path", CELLS, ids=lambda path: path.stem)
def test_the_names_of_a_sample_cell_are_those_in_its_header(path: Path):
    text = path.read_text()
    expected = headers(text)
    needed = tuple(map(int, expected.pop("python", "3.10").split(".")))
    if sys.version_info < needed:
        pytest.skip(f"the cell needs Python {needed}")
    compile(text, str(path), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    found = shown(names_of(text))
    assert found == {name: expected.get(name, "") for name in found}


def test_lines_are_the_first_in_which_a_name_is_read():
    names = names_of("x = 1\nprint(a, x,\n  b)\ndef f():\n    return a, c\nb\n")
    assert names.lines == {"print": 2, "a": 2, "b": 3, "c": 5}


def test_lines_in_the_body_of_a_cell_magic_are_those_of_the_cell():
    names = names_of("# %%parallel\nget_ipython().run_cell_magic('time', '', 'a\\n\\n!echo $b\\n%time c\\n')")
    assert names.lines == {"get_ipython": 2, "a": 3, "b": 5, "c": 6}


def test_the_tree_of_a_cell_with_magics_is_left_as_it_was():
    tree = ast.parse("get_ipython().run_line_magic('time', 'f(x)')")
    before = ast.dump(tree)
    assert "x" in cell_names(tree).reads
    assert ast.dump(tree) == before


def test_annotations_are_not_read_when_an_earlier_cell_has_postponed_them():
    tree = ast.parse("def f(x: Config): return x")
    assert cell_names(tree).reads == {"Config"}
    names = cell_names(tree, postponed=True)
    assert (names.reads, names.annotated) == (frozenset(), {"Config"})


def test_many_functions_that_call_each_other_are_followed_once_each():
    every = " + ".join(f"f{i}()" for i in range(60))
    source = "\n".join(f"def f{i}(): return {every} + x{i}" for i in range(60)) + "\nf0()"
    assert names_of(source).reads == {f"x{i}" for i in range(60)}


@pytest.mark.parametrize("module", [argparse, ast, asyncio.base_events, dataclasses, enum, inspect, typing])
def test_what_the_syntax_tells_of_a_long_text_agrees_with_what_its_code_does(module: ModuleType):
    text = Path(module.__file__).read_text()
    names, in_code = names_of(text), code_names(compiled(text))
    scopes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Module, ast.ClassDef)))
    bound_in_classes = {bound for scope in scopes for bound in scope_bindings(scope.body).own}
    from_outside = names.reads - names.binds - {"__debug__"}  # the compiler puts in a constant for that one
    assert from_outside <= in_code
    assert (
        in_code - bound_in_classes - names.binds - {"__name__"} <= names.reads
    )  # a class statement reads that


def definition_time(source: str, *, postponed: bool = False) -> set[str]:
    (node,) = ast.parse(source).body
    return set(definition_time_names(node, postponed=postponed))


def test_a_function_statement_reads_its_decorators_and_annotations_but_not_its_body_or_defaults():
    source = "@deco(key)\nasync def f(x: A, *y: 'Q', z: B = default) -> C:\n    return body"
    assert definition_time(source) == {"deco", "key", "A", "B", "C"}
    assert definition_time(source, postponed=True) == {"deco", "key"}


def test_a_class_statement_reads_its_bases_keywords_and_body_but_not_its_methods_bodies():
    source = """
@deco
class A(Base, metaclass=Meta, **options):
    x: Type = value
    y = x
    @wrap
    def f(self, n: Hint = given, *, k=y) -> Result:
        return later, x
    class Inner(y.part):
        z = inner
        def g(self, n=y): return never
"""
    evaluated = {"deco", "Base", "Meta", "options", "value", "wrap", "given", "inner", "y"}
    assert definition_time(source) == evaluated | {"Type", "Hint", "Result"}
    assert definition_time(source, postponed=True) == evaluated


def test_a_class_statement_that_uses_its_own_name_reads_it_but_not_from_a_lambda():
    assert definition_time("class A(A): pass") == {"A"}
    assert definition_time("class A:\n    new = field(default_factory=lambda: A(other))") == {
        "field",
        "other",
    }


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with Python 3.12")
def test_type_parameters_are_not_names_of_the_notebook():
    assert definition_time("class A[T: Bound](Base[T]):\n    x: T") == {"Base", "Bound"}
    assert definition_time("def f[T, *Ts, **P](x: T, *y: *Ts, z: Q) -> P: ...") == {"Q"}


def test_default_names_are_those_in_the_defaults_of_a_function():
    (node,) = ast.parse("def f(a, b=x.y, *, c, d=[z for z in w], e: T = lambda: v): return body").body
    assert default_names(node) == {"x", "w", "v"}


def compiled(source: str):
    return compile(source, "<cell>", "exec", dont_inherit=True)


def test_code_names_are_the_globals_that_code_and_the_code_inside_it_uses():
    source = """
def f(x):
    global made, gone
    made = read(x)
    del gone
    class Inner(base):
        y = looked_up
        def method(self): return deep, x
    return [comprehended for _ in x], lambda: in_lambda, made.attribute
"""
    (function,) = (const for const in compiled(source).co_consts if hasattr(const, "co_code"))
    wanted = {"made", "gone", "read", "base", "looked_up", "deep", "comprehended", "in_lambda"}
    found = code_names(function)
    assert wanted <= found
    assert found - wanted <= {"__name__"}
    assert {"attribute", "read", "x"} & code_attributes(function) == {"attribute", "read"}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with Python 3.12")
def test_code_names_include_globals_that_are_looked_up_from_within_a_class():
    function = next(
        const for const in compiled("def f(T):\n  class A[U](T[Glob, U]): x: Ann = T").co_consts if const
    )
    assert {"Glob", "Ann"} <= code_names(function)


def test_names_in_quoted_annotations_are_found_at_any_depth():
    quoted = [
        "list[Config]",
        GenericAlias(list, ("A.b",)),
        ForwardRef("dict[str, 'B']"),
        GenericAlias(dict, (str, GenericAlias(list, ("C",)))),
        "no expression(",
    ]
    assert annotation_names([*quoted, int, 3]) == {"list", "Config", "A", "dict", "str", "B", "C"}
