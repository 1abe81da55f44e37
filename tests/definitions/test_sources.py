from __future__ import annotations
import __future__

import ast
import linecache
import sys
import textwrap
from collections.abc import Iterator
from types import CodeType, ModuleType

import pytest

from nbshm.definitions.sources import Source, definition_statement, find_source
from nbshm.jobs import Origin


class Session:
    """Runs cells as IPython does: one name per text, its text in linecache, statement by statement."""

    def __init__(self) -> None:
        self.module = ModuleType("__main__")
        self.cells: dict[str, int] = {}
        self.count = 0
        self.flags = 0

    def run(self, text: str, *, filename: str | None = None) -> str:
        self.count += 1
        text = textwrap.dedent(text).lstrip("\n")
        name = filename or f"cells of {id(self)}/{hash(text)}.py"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        self.cells[name] = self.count
        for statement in ast.parse(text).body:
            code = compile(ast.Module([statement], []), name, "exec", self.flags, dont_inherit=True)
            self.flags |= code.co_flags & __future__.annotations.compiler_flag
            exec(code, self.module.__dict__)  # noqa: S102  # that is what a session is for
        return name

    def __getitem__(self, name: str):
        return self.module.__dict__[name]

    def source(self, definition) -> Source | None:
        return find_source(self[definition] if isinstance(definition, str) else definition, cells=self.cells)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A notebook whose module is `__main__` while the test runs."""
    running = Session()
    monkeypatch.setitem(sys.modules, "__main__", running.module)
    yield running
    for name in running.cells:
        linecache.cache.pop(name, None)


def nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from nested(constant)


def recompiled(source: Source) -> set[CodeType]:
    statement = definition_statement(source)
    flags = __future__.annotations.compiler_flag if source.postponed else 0
    return set(
        nested(compile(ast.Module([statement], []), source.origin.filename, "exec", flags, dont_inherit=True))
    )


def test_a_function_is_found_with_its_text_and_place(session: Session):
    name = session.run("x = 1\n\ndef f(a):  # adds\n    return a + x\n\ny = 2\n")
    assert session.source("f") == Source(
        text="def f(a):  # adds\n    return a + x\n",
        origin=Origin(filename=name, line=3, cell=1),
        column=0,
        postponed=False,
    )


def test_a_cell_without_a_number_is_told_as_such(session: Session):
    session.run("def f(): pass")
    source = find_source(session["f"], cells={})
    assert source is not None
    assert source.origin.cell is None


@pytest.mark.parametrize(
    "statement", ["async def f(): await x", "def f(): yield 1", "class f:\n def g(self): 0"]
)
def test_every_kind_of_definition_is_found(session: Session, statement: str):
    session.run(statement)
    source = session.source("f")
    assert source is not None
    assert source.text == statement + "\n"


def test_decorators_belong_to_the_text(session: Session):
    session.run("""
        import functools
        @  (
            functools.lru_cache(maxsize=None)
        )
        # between
        def g(x):
            return x
        """)
    source = session.source("g")
    assert source is not None
    assert source.text.startswith("@  (\n    functools")
    assert source.origin.line == 2
    assert session["g"].__wrapped__.__code__ in recompiled(source)


def test_a_function_that_took_the_name_of_another_has_no_source(session: Session):
    session.run("import functools\ndef g(): pass\n@functools.wraps(g)\ndef f(): return 1")
    assert session.source("f") is None


def test_a_decorator_that_returns_the_function_belongs_to_the_text(session: Session):
    session.run("def register(f): return f\n@register\ndef f(): pass")
    source = session.source("f")
    assert source is not None
    assert source.text.startswith("@register\n")


def test_a_wrapper_without_a_way_to_what_it_wraps_has_no_source(session: Session):
    session.run("""
        def counted(function):
            def inner(*a): return function(*a)
            return inner
        @counted
        def half(x): return x // 2
        """)
    assert session.source("half") is None


def test_a_wrapper_leads_to_the_function_that_its_decorator_was_given(session: Session):
    session.run("""
        import functools
        def clamp(top):
            def deco(function):
                @functools.wraps(function)
                def inner(x): return min(top, function(x))
                return inner
            return deco
        @clamp(50)
        def triple(x): return 3 * x
        """)
    source = session.source("triple")
    assert source is not None
    assert source.text == "@clamp(50)\ndef triple(x): return 3 * x\n"


def test_what_was_wrapped_after_the_statement_has_no_source(session: Session):
    session.run("import functools\ndef f(): pass\nf = functools.lru_cache(f)")
    assert session.source("f") is None


def test_a_function_that_wraps_another_keeps_its_own_source(session: Session):
    session.run(
        "import functools\ndef g(): pass\n@functools.wraps(g)\ndef f(): return 1\nf.__qualname__ = 'f'"
    )
    source = session.source("f")
    assert source is not None
    assert source.text.endswith("def f(): return 1\n")


@pytest.mark.parametrize(
    "cell",
    [
        "f = lambda x: x",
        "def make(k):\n    def f(): return k\n    return f\nf = make(1)",
        "def make():\n    def f(): return 1\n    return f\nf = make()",
        "exec('def f(): pass')",
        "exec('class f: x = 1')",
        "exec('class f:\\n def g(self): pass')",
        "import functools\nf = functools.partial(print)",
        "import collections\nf = collections.namedtuple('f', 'x y')",
        "import enum\nf = enum.Enum('f', 'A B')",
        "f = type('f', (), {'x': 1})",
        "f = print",
        "f = int",
        "f = 3",
        "class Outer:\n    def f(self): pass\nf = Outer.f",
        "class Outer:\n    class Inner:\n        def f(self): pass\nf = Outer.Inner",
        "def f(): pass\nf.__qualname__ = 'other'",
        "def f(): return 1\ndef g(): return 2\nf.__code__ = g.__code__",
        "class f: pass\nf.__qualname__ = f.__name__ = 'other'",
    ],
)
def test_what_no_statement_made_has_no_source(session: Session, cell: str):
    session.run(cell)
    assert session.source("f") is None


@pytest.mark.parametrize(
    "text", ["def f(): return 3\n", "\ndef f(): return 1\n", "def f(:\n", "def f(): 1\0\n", ""]
)
def test_a_text_that_no_longer_holds_the_definition_is_not_believed(session: Session, text: str):
    name = session.run("def f(): return 1")
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    assert session.source("f") is None


def test_an_edited_cell_does_not_confuse_the_definitions_that_it_made_before(session: Session):
    session.run("def f(x): return x + 100")
    old = session["f"]
    session.run("def f(x): return x + 200")
    for function, expected in ((old, "100"), (session["f"], "200")):
        source = session.source(function)
        assert source is not None
        assert expected in source.text


def test_cells_that_share_one_name_are_told_apart_by_their_code(session: Session):
    session.run("def f(x): return x + 100", filename="the only cell")
    old = session["f"]
    session.run("def f(x): return x + 200", filename="the only cell")
    assert session.source(old) is None
    assert session.source("f") is not None


def test_of_several_definitions_in_one_cell_each_finds_its_own(session: Session):
    session.run(
        "def f(): return 1\nfirst = f\nif True:\n    def f(): return 1\nelse:\n    def f(): return 1\n"
    )
    for definition, line in (("first", 1), ("f", 4)):
        source = session.source(definition)
        assert source is not None
        assert source.origin.line == line


INDENTED = '''
try:
\tpass
finally:
    if True:
        @staticmethod_free
        def f(a, b=(1,
    2)):
            """Doc

            indented"""
            # comment
          # further left
            text = """
        kept
            kept"""
            number = f"""{a
              } kept
            """
            return a, b, text, number, 'x\\
            y'
'''


def test_an_indented_definition_moves_to_the_margin_without_changing(session: Session):
    session.run("def staticmethod_free(f): return f\n" + INDENTED)
    source = session.source("f")
    assert source is not None
    assert source.text.startswith("@staticmethod_free\ndef f(a, b=(1,\n2)):\n")
    assert (source.column, source.origin.line) == (8, 7)
    (alone,) = ast.parse(source.text).body
    namespace = {"staticmethod_free": lambda f: f}
    exec(compile(ast.Module([alone], []), "alone", "exec"), namespace)  # noqa: S102  # to compare what it does
    assert namespace["f"](1) == session["f"](1)
    assert namespace["f"].__doc__ == session["f"].__doc__


@pytest.mark.parametrize(
    "block",
    ["if True:", "for _ in [1]:", "while True:", "with contextlib.nullcontext():", "match 1:\n  case 1:"],
)
def test_an_indented_definition_compiles_to_the_same_code_at_the_same_place(session: Session, block: str):
    body = '@cached\ndef f(x):\n    """Doc\n    more"""\n    return [y for y in\n  x]\n'
    text = "from functools import lru_cache as cached\nimport contextlib\n" + block + "\n"
    session.run(text + textwrap.indent(body, "     ") + ("     break\n" if block.startswith("while") else ""))
    source = session.source("f")
    assert source is not None
    assert session["f"].__wrapped__.__code__ in recompiled(source)


def test_a_definition_indented_with_tabs_compiles_to_the_same_code(session: Session):
    session.run("if True:\n\tif True:\n\t\tclass A:\n\t\t\tdef f(self):\n\t\t\t\treturn 1\n")
    source = session.source("A")
    assert source is not None
    assert (source.text, source.column) == ("class A:\n\tdef f(self):\n\t\treturn 1\n", 2)
    assert session["A"].f.__code__ in recompiled(source)


def test_postponed_annotations_are_told_of_the_function_that_has_them(session: Session):
    session.run("def before(x: int): pass")
    session.run("from __future__ import annotations")
    session.run("def after(x: int): pass")
    found = [session.source(name) for name in ("before", "after")]
    assert [source and source.postponed for source in found] == [False, True]
    assert session["after"].__code__ in recompiled(found[1])


def test_the_name_of_a_definition_may_be_one_of_the_builtins(session: Session):
    session.run("def max(a): return a\nclass list:\n    def x(self): pass")
    assert session.source("max") is not None
    assert session.source("list") is not None


CLASSES = {
    "methods": "class A:\n    x = 1\n    def f(self): return super().f()\n",
    "dataclass": (
        "from dataclasses import *\n"
        "@dataclass(frozen=True)\n"
        "class A:\n"
        "    x: int = 1\n"
        "    y: list = field(default_factory=list)\n"
    ),
    "slots": (
        "from dataclasses import *\n@dataclass(slots=True)\nclass A:\n    x: int = 1\n    def f(self): pass\n"
    ),
    "bare slots": "from dataclasses import *\n@dataclass(slots=True)\nclass A:\n    x: int = 1\n",
    "named tuple": "from typing import NamedTuple\nclass A(NamedTuple):\n    x: int\n    y: int = 2\n",
    "named tuple with methods": (
        "from typing import NamedTuple\nclass A(NamedTuple):\n    x: int\n    def f(self): pass\n"
    ),
    "enum": "import enum\nclass A(enum.Enum):\n    X = 1\n    Y = enum.auto()\n    Z = X\n",
    "flag": "import enum\nclass A(enum.IntFlag):\n    R = 4\n    W = 2\n",
    "enum with methods": "import enum\nclass A(enum.Enum):\n    X = 1\n    def f(self): pass\n",
    "enum with new": (
        "import enum\n"
        "class A(int, enum.Enum):\n"
        "    X = 1\n"
        "    def __new__(cls, v): return int.__new__(cls, v)\n"
    ),
    "protocol": "from typing import *\n@runtime_checkable\nclass A(Protocol):\n    x: int\n",
    "generic": "from typing import *\nT = TypeVar('T')\nclass A(Generic[T]):\n    x: T\n",
    "typed dict": (
        "from typing import *\nclass B(TypedDict):\n    y: int\nclass A(B, total=False):\n    x: int\n"
    ),
    "metaclass": "class M(type):\n    def __call__(cls): return 1\nclass A(metaclass=M):\n    x = 1\n",
    "abstract": (
        "import abc\nclass A(abc.ABC):\n    @property\n    @abc.abstractmethod\n    def x(self): pass\n"
    ),
    "property": "class A:\n    @property\n    def x(self): pass\n",
    "setter": "class A:\n    x = property(None, None)\n    @x.setter\n    def x(self, value): pass\n",
    "classmethod": "class A:\n    @classmethod\n    def x(cls): pass\n",
    "cached": "import functools\nclass A:\n    @functools.cached_property\n    def x(self): pass\n",
    "cached method": "import functools\nclass A:\n    @functools.lru_cache\n    def x(self): pass\n",
    "dispatched": (
        "import functools\nclass A:\n    @functools.singledispatchmethod\n    def x(self, y): pass\n"
    ),
    "lambda": "class A:\n    x = lambda self: 1\n",
    "exception": "class A(ValueError): pass\n",
    "empty": "class A: ...\n",
    "documented": "class A:\n    '''Doc.\n\n    More.\n    '''\n",
    "private": "class A:\n    __x = 1\n    _y = 2\n    def __f(self): pass\n",
    "nested class": "class A:\n    class B:\n        def f(self): pass\n",
    "deleted name": "class A:\n    x = 1\n    y = 2\n    del x\n",
    "conditional": "class A:\n    if True:\n        x: int = 1\n    else:\n        y: int\n",
    "imported": "class A:\n    import os\n    from math import pi\n",
    "starred bases": "bases = (dict,)\nclass A(*bases):\n    x = 1\n",
    "init subclass": "class A:\n    def __init_subclass__(cls): pass\n",
    "async method": "class A:\n    async def f(self): pass\n",
}


@pytest.mark.parametrize("cell", CLASSES.values(), ids=CLASSES.keys())
@pytest.mark.parametrize(
    "earlier", ["", "from __future__ import annotations"], ids=["evaluated", "postponed"]
)
def test_classes_of_every_kind_are_found(session: Session, cell: str, earlier: str):
    session.run(earlier)
    session.run(cell)
    source = session.source("A")
    assert source is not None
    assert source.text in cell
    assert source.text.lstrip("@\n").startswith(("class A", "dataclass", "runtime_checkable"))
    has_anything_to_postpone = any(
        word in cell.partition("class A")[2] for word in ("def ", "lambda", ": int", "x: T")
    )
    assert source.postponed == (bool(earlier) and has_anything_to_postpone)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with Python 3.12")
def test_generic_definitions_with_type_parameters_are_found(session: Session):
    session.run(
        "class A[T]:\n    x: T\nclass B[T](A[T]):\n    def f[U](self, x: U): pass\ndef g[T](x: T): return x\n"
    )
    assert all(session.source(name) for name in ("A", "B", "g"))


@pytest.mark.parametrize(
    ("live", "failed"),
    [
        ("class A:\n    x = 1\n", "class A:\n    x = 2\n"),
        ("class A:\n    x = 1\n", "class A:\n    x = 1\n    y = 2\n"),
        ("class A:\n    x = 1\n    y = 2\n", "class A:\n    x = 1\n"),
        ("class A:\n    x: int\n", "class A:\n    y: int\n"),
        ("class A:\n    x: int\n", "class A:\n    x: int\n    y: int\n"),
        ("class A:\n    x: int\n    y: int\n", "class A:\n    x: int\n"),
        ("class A: pass\n", "class A(dict): pass\n"),
        ("class A(dict): pass\n", "class A(list): pass\n"),
        ("class A(dict): pass\n", "class A: pass\n"),
        ("class A:\n    'One.'\n", "class A:\n    'Two.'\n"),
        ("class A: x = 1\n", "class A:\n    x = 1\n    def f(self): pass\n"),
        ("class A:\n    def f(self): return 1\n", "class A:\n    def f(self): return 2\n"),
        ("class A:\n    def f(self): return 1\n", "class A: pass\n"),
        ("import enum\nclass A(enum.Enum):\n    X = 1\n", "class A(enum.Enum):\n    X = 2\n"),
        (
            "from typing import *\nclass A(NamedTuple):\n    x: int = 1\n",
            "class A(NamedTuple):\n    x: int = 2\n",
        ),
        (
            "from dataclasses import *\n@dataclass\nclass A:\n    x: int = 1\n",
            "@dataclass\nclass A:\n    x: int = 2\n",
        ),
    ],
)
def test_a_newer_statement_that_never_ran_is_not_taken_for_the_class(
    session: Session, live: str, failed: str
):
    name = session.run(live)
    session.run("if False:\n" + textwrap.indent(failed, "    "))
    source = session.source("A")
    assert source is not None
    assert source.origin.filename == name


def test_of_equal_statements_the_newest_is_taken(session: Session):
    session.run("class A: x = 1  # first")
    session.run("class A: x = 1  # second")
    session.run("class A: x = 1  # first")
    source = session.source("A")
    assert source is not None
    assert (source.text, source.origin.cell) == ("class A: x = 1  # first\n", 3)


def test_a_class_that_was_changed_since_is_still_found(session: Session):
    session.run("class A:\n    rate = 99.0\n    def f(self): return 1\n    def g(self): return 2\n")
    session.run("class B:\n    rate = 99.0\n")
    session.run("def g(self): return 3\nA.g = A.extra = g\nA.rate = B.rate = B.more = 0.25\ndel A.rate")
    assert session.source("A") is not None
    assert session.source("B") is not None


def test_a_class_whose_methods_all_come_from_elsewhere_has_no_source(session: Session):
    session.run("class A:\n    def f(self): return 1\n")
    session.run("def f(self): return 2\nA.f = f")
    assert session.source("A") is None


def test_a_class_that_inherits_from_its_predecessor_is_not_taken_for_it(session: Session):
    session.run("class A:\n    def f(self): return 1\n")
    old = session["A"]
    session.run("class A(A):\n    def f(self): return 1\n")
    assert session.source(old).text == "class A:\n    def f(self): return 1\n"
    assert session.source("A").text.startswith("class A(A):")


def test_without_a_list_of_cells_all_texts_that_are_in_no_file_count(session: Session):
    session.run("class OnlyHere:\n    x = 1\n")
    source = find_source(session["OnlyHere"])
    assert source is not None
    assert source.origin.cell is None


def test_cells_that_warn_when_they_are_compiled_do_not_warn_again(session: Session):
    text = "def f(x): return x is 1, '\\d'\nclass A:\n    y = '\\d'\n"
    with pytest.warns((SyntaxWarning, DeprecationWarning)):
        session.run(text)
    assert session.source("f") is not None
    assert session.source("A") is not None


def test_an_object_that_has_every_attribute_is_not_followed_for_ever(session: Session):
    class Endless:
        def __getattr__(self, name: str):
            return self

        def __call__(self) -> None: ...

    assert session.source(Endless()) is None


def test_cells_of_a_real_shell_are_found(tmp_path, monkeypatch: pytest.MonkeyPatch):
    shells = pytest.importorskip("IPython.core.interactiveshell")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = shells.InteractiveShell(user_module=ModuleType("__main__"))
    shell.history_manager.enabled = False
    cell = """%config Application.verbose_crash = False
words = !echo one
import functools
@functools.lru_cache
def f(x):
    return [await_ for await_ in range(x)]
class A:
    x = 1
if True:
    class B:
        def f(self): return self
await_ = await_later() if False else 1
f(2)"""
    assert shell.run_cell(cell, store_history=True).success
    cells = {name: 1 for name in linecache.cache if "ipython-input" in name}
    for name, line in (("f", 4), ("A", 7), ("B", 10)):
        source = find_source(shell.user_ns[name], cells=cells)
        assert source is not None, name
        assert source.origin.line == line
