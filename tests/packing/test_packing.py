"""Packing: which definitions and values are written down, and in which order."""

from __future__ import annotations
import __future__

import ast
import copyreg
import io
import linecache
import pickle
from collections.abc import Iterable
from types import CodeType, FunctionType
from typing import Any

import pytest

from nbshm.definitions.by_value import reduce_code
from nbshm.errors import CannotSend
from nbshm.jobs import (
    Define,
    Enter,
    Import,
    LeftOut,
    Load,
    Refill,
    Register,
    RemoveAttribute,
    SetAttribute,
)
from nbshm.notebook.namespace import Notebook
from nbshm.packing import Needs, Packed, Reference, pack
from nbshm.packing.knowledge import LearntError

CELL = "<cell that is packed>"


class PlainPickler(pickle.Pickler):
    """Pickles what it is told by name as that name, so that no module has to have it."""

    def __init__(self, reference: Reference) -> None:
        self._file = io.BytesIO()
        self._reference = reference
        super().__init__(self._file)

    @property
    def stream(self) -> bytes:
        return self._file.getvalue()

    def meet(self, values: Iterable[Any]) -> None:
        pass

    def persistent_id(self, value: Any) -> str | None:
        answer = self._reference(value) if isinstance(value, (type, FunctionType)) else None
        return answer if isinstance(answer, str) else None

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, CodeType):
            return reduce_code(value)
        return self._reference(value) if isinstance(value, FunctionType) else NotImplemented


class PlainUnpickler(pickle.Unpickler):
    """Reads a name as that name in brackets."""

    def persistent_load(self, name: str) -> str:
        return f"<{name}>"


class Unsayable:
    """A value that can't be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("it has no words")


@pytest.fixture
def notebook(monkeypatch):
    """Return what makes a notebook of one cell, `In [1]`."""

    def make(source: str, **values: Any) -> Notebook:
        entry = (len(source), None, source.splitlines(keepends=True), CELL)
        monkeypatch.setitem(linecache.cache, CELL, entry)
        namespace, flags = {"__name__": "__main__", **values}, 0
        for statement in ast.parse(source).body:  # one by one, as IPython does: the code depends on it
            code = compile(ast.Module([statement], []), CELL, "exec", flags, dont_inherit=True)
            flags |= code.co_flags & __future__.annotations.compiler_flag
            exec(code, namespace)  # noqa: S102  # the cell of the test
        return Notebook(namespace=namespace, cells={CELL: 1})

    return make


def packed(notebook: Notebook, names: Iterable[str], **needs: Any) -> Packed[PlainPickler]:
    wanted = Needs(names=dict.fromkeys(names, "the test"), **needs)
    return pack(wanted, notebook, PlainPickler)


def steps(result: Packed[PlainPickler]) -> list[str]:
    """Return the steps as `import json`, `load x`, `define f`, with the live values of a definition."""
    return [words(step) for step in result.program.steps]


def words(step: Import | Load | Define) -> str:
    match step:
        case Import(module=module):
            return f"import {module}"
        case Load(name=name):
            return f"load {name}"
        case Define(name=name, live=live, blank=blank):
            given = [*live, *(f"{key} later" for key in blank)]
            return f"define {name}" + (f" with {', '.join(given)}" if given else "")


def values(result: Packed[PlainPickler]) -> list[Any]:
    """Return the values of the stream, without the empty lists before them."""
    file = io.BytesIO(result.program.values)
    unpickler, found = PlainUnpickler(file), []
    while file.tell() < len(result.program.values):
        assert unpickler.load() == []
        found.append(unpickler.load())
    return found


def late(result: Packed[PlainPickler]) -> dict[str, Any]:
    """Return what is given late, in order: `x` a value, `f.a` an attribute, `x filled` its contents."""
    takers = [step for step in result.program.late if not isinstance(step, RemoveAttribute)]
    given = values(result)[-len(takers) :] if takers else []
    return dict(zip(map(late_words, takers), given, strict=True))


def late_words(step: Load | Refill | SetAttribute | Register) -> str:
    match step:
        case SetAttribute(name=name, path=path):
            return f"{name}.{path}"
        case Refill(name=name):
            return f"{name} filled"
    return step.name


def test_a_value_alone_is_in_the_tail(notebook) -> None:
    result = packed(notebook("x = [1]"), ["x"])
    assert steps(result) == []
    assert late(result) == {"x": [1]}
    assert result.names == {"x"}


def test_what_nobody_needs_stays_away(notebook) -> None:
    result = packed(notebook("import json\nx = y = 1\ndef f(): return x\ndef g(): return y"), ["f"])
    assert steps(result) == ["define f"]
    assert late(result) == {"x": 1}


def test_names_that_the_notebook_lacks_are_left_to_the_worker(notebook) -> None:
    result = packed(notebook(""), ["nowhere", "len", "Out"])
    assert steps(result) == []
    assert result.names == frozenset()


def test_a_chain_of_uses_is_followed_to_its_end(notebook) -> None:
    result = packed(notebook("import json\ndef f(): return g()\ndef g(): return json.dumps(h)\nh = 3"), ["f"])
    assert steps(result) == ["import json", "define f", "define g"]
    assert late(result) == {"h": 3}


def test_a_base_stands_before_its_class(notebook) -> None:
    result = packed(notebook("class A: pass\nclass B(A): pass"), ["B", "A"])
    assert steps(result) == ["define A", "define B"]


def test_a_value_that_a_class_body_reads_is_loaded_before_it(notebook) -> None:
    result = packed(notebook("n = 3\nclass A:\n    for i in range(n): pass"), ["A"])
    assert steps(result) == ["load n", "define A"]
    assert late(result) == {}


def test_what_a_class_body_calls_has_all_that_it_reads(notebook) -> None:
    source = "n = 3\ndef size(): return n\nclass A:\n    if size(): pass"
    assert steps(packed(notebook(source), ["A"])) == ["define size", "load n", "define A"]


def test_a_default_that_is_an_instance_asks_for_its_class_first(notebook) -> None:
    result = packed(notebook("class A: pass\ndef f(a=A()): return a"), ["f"])
    assert steps(result) == ["define A", "define f with f.a"]


def test_one_object_is_one_object_over_the_whole_stream(notebook) -> None:
    result = packed(notebook("x = []\ndef f(a=x): return a"), ["f", "x"])
    default, x = values(result)
    assert x is default


def test_a_default_that_closes_a_circle_is_given_later(notebook) -> None:
    result = packed(notebook("def f(g=None): return g\ndef g(f=f): return f\nf.__defaults__ = (g,)"), ["f"])
    assert steps(result) == ["define f with f.g later", "define g with g.f"]
    assert values(result)[0] == "<f>"
    assert late(result)["f.__defaults__"] == ("<g>",)


def test_a_class_and_an_attribute_of_its_own_kind_close_no_circle(notebook) -> None:
    result = packed(notebook("class A: pass\nA.first = A()"), ["A"])
    assert steps(result) == ["define A"]


def test_a_container_that_closes_a_circle_is_there_empty_and_filled_later(notebook) -> None:
    result = packed(notebook("made = {}\nclass A:\n    if made: pass\nmade['a'] = A"), ["A"])
    assert steps(result) == ["load made", "define A"]
    assert values(result)[0] == {}
    assert late(result) == {"made": {"a": "<A>"}}


def test_what_a_loaded_value_refers_to_stands_before_it(notebook) -> None:
    result = packed(notebook("class A: pass\nheld = (A,)\nclass B:\n    if held: pass"), ["B"])
    assert steps(result) == ["define A", "load held", "define B"]


def test_what_can_not_wait_in_a_circle_goes_by_value(notebook) -> None:
    source = "class A: pass\nheld = (A,)\nclass B:\n    if held: pass\nclass A(B): pass\nheld = (A,)"
    with pytest.raises(CannotSend, match="'B'"):  # this pickler writes no class in full
        packed(notebook(source), ["B"])


def test_a_register_that_a_class_statement_fills_has_its_contents_restored(notebook) -> None:
    source = (
        "names = ['left from earlier']\nclass Base:\n    def __init_subclass__(cls): names.append(1)\n"
        "class A(Base): pass"
    )
    result = packed(notebook(source), ["A"])
    assert steps(result) == ["define Base", "load names", "define A"]
    assert late(result) == {"names filled": ["left from earlier", 1]}


def test_passes_that_learn_nothing_have_an_end(notebook) -> None:
    class Misleading:
        def __reduce__(self) -> Any:
            raise LearntError

    with pytest.raises(RuntimeError, match="no order was found for the notebook's definitions"):
        packed(notebook("", x=Misleading()), ["x"])


def test_a_lambda_goes_by_value_with_what_it_reads(notebook) -> None:
    result = packed(notebook("y = 2\nf = lambda: y"), ["f"])
    assert steps(result) == []
    assert result.names == {"f", "y"}
    assert result.program.cells[CELL].number == 1


def test_state_that_was_set_later_is_in_the_tail(notebook) -> None:
    result = packed(notebook("def f(): pass\nf.calls = 3"), ["f"])
    assert late(result) == {"f.calls": 3}


def test_objects_of_the_notebooks_classes_follow_what_they_may_hold(notebook) -> None:
    result = packed(notebook("class A: pass\na = A()\nx = 1"), ["a", "x"])
    assert [step.name for step in result.program.late] == ["x", "a"]


def test_a_refusal_names_the_line_of_the_use(notebook) -> None:
    source = "def f():\n    a = 1\n    return (a,\n        bad)"
    with pytest.raises(CannotSend, match=r"'bad'.*\(used by f, In \[1\] line 4\)"):
        packed(notebook(source, bad=Unsayable()), ["f"])


def test_a_refusal_names_the_line_of_a_lambda(notebook) -> None:
    source = "f = [\n    lambda: bad]"
    with pytest.raises(CannotSend, match=r"'bad'.*\(used by <lambda>, In \[1\] line 2\)"):
        packed(notebook(source, bad=Unsayable()), ["f"])


def test_a_refusal_names_the_path(notebook) -> None:
    with pytest.raises(CannotSend, match=r"'x\[1\]\['a'\]'"):
        packed(notebook("", x=[0, {"a": Unsayable()}]), ["x"])


def test_a_part_that_asks_for_a_class_is_no_culprit(notebook) -> None:
    """The search goes through the parts in another order than pickling does."""
    source = (
        "class A: pass\nclass B:\n    def __reduce__(self): raise TypeError('no words')\nb = B(); b.a = A()\n"
    )
    with pytest.raises(CannotSend, match=r"'f\.b'.*no words"):
        packed(notebook(source + "def f(b=b): return b"), ["f"])


def test_what_a_register_has_for_a_class_follows_it_and_is_left_out_where_it_can_not_travel(
    notebook, monkeypatch
) -> None:
    there = notebook("class A: pass\nclass B: pass\nclass C: pass\ndef enter(a): return A, (n,)\nn = 3")
    names = there.namespace
    monkeypatch.setitem(copyreg.dispatch_table, names["A"], names["enter"])
    monkeypatch.setitem(copyreg.dispatch_table, names["B"], Unsayable())
    result = packed(there, ["A", "B", "C"])
    assert steps(result) == ["define A", "define B", "define C", "define enter"]
    assert [step for step in result.program.late if isinstance(step, Enter)] == [
        Enter(name="A", module="copyreg")
    ]
    assert late(result)["n"] == 3
    assert values(result)[-1] == ("<A>", "<enter>")


def test_what_is_optional_is_left_out_with_a_sentence(notebook) -> None:
    result = packed(notebook("", x=Unsayable(), y=1), ["x", "y"], optional=frozenset({"x"}))
    assert result.names == {"y"}
    assert late(result) == {"y": 1}
    assert result.program.left_out["x"].sentence.startswith("the notebook's 'x' is not in this process: ")


def test_where_all_is_optional_a_definition_goes_without_what_it_reads(notebook) -> None:
    result = packed(notebook("def f(): return x", x=Unsayable()), ["f"], all_optional=True)
    assert steps(result) == ["define f"]
    assert result.program.left_out.keys() == {"x"}


def test_a_class_that_can_not_travel_is_left_out_as_a_class(notebook) -> None:
    result = packed(notebook("class A:\n    x = made()", made=Unsayable), ["A"], all_optional=True)
    assert result.program.left_out["A"].is_class
    assert steps(result) == []


def test_what_did_not_travel_here_does_not_travel_on(notebook) -> None:
    there = notebook("x = 1")
    there.left_out = {"x": LeftOut(sentence="it was left behind", is_class=False)}
    result = packed(there, ["x"])
    assert result.names == frozenset()
    assert result.program.left_out == there.left_out


def test_names_of_annotations_alone_may_be_left_out(notebook) -> None:
    source = "from __future__ import annotations\ndef f(a: Bad): return a"
    result = packed(notebook(source, Bad=Unsayable()), ["f"])
    assert steps(result) == ["define f"]
    assert result.program.left_out.keys() == {"Bad"}


def test_extra_values_are_bound_without_being_the_notebooks(notebook) -> None:
    result = packed(notebook(""), [], extra={"Out": {1: 2}})
    assert late(result) == {"Out": {1: 2}}
    assert result.names == frozenset()
