from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from nbshm.definitions.escapes import write_out


def written(call: str) -> list[str]:
    """The code that stands in front of a call of one of IPython's methods."""
    *code, _ = write_out(ast.parse(f"get_ipython().{call}")).body
    return [ast.unparse(statement) for statement in code]


@pytest.mark.parametrize(
    ("command", "expanded"),
    [
        ("echo {rank}", ["rank"]),
        ("echo {a + b[0]} {c!r} {d:>4} {e:{f}}", ["a + b[0]", "c", "d", "e", "f"]),
        ("echo $a $b.c ${d} $$e x$f", ["a", "b.c", "f", "d"]),
        ("echo {{a}} }} {{", []),
        ("awk '{print $1}' {b}", ["b"]),
        ("echo { {b} }}", ["b"]),
        ("echo nothing", []),
        ("echo {} {0}", ["0"]),
    ],
)
def test_a_shell_escape_reads_what_it_expands(command: str, expanded: list[str]):
    assert written(f"system({command!r})") == expanded
    assert written(f"getoutput({command!r})") == expanded


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("f(x)", ["f(x)"]),
        ("-n1 -r1 f(x)", ["f(x)"]),
        ("-n 10 -o f(x); g()", ["f(x)", "g()"]),
        ("-f inner outer(x)", ["inner", "outer(x)"]),
        ("-f", []),
        ("x = = 3", ["x", "3"]),
        ("", []),
    ],
)
def test_the_line_of_a_magic_that_runs_code_is_code_after_its_options(line: str, code: list[str]):
    assert written(f"run_line_magic('time', {line!r})") == code


def test_what_a_magic_binds_elsewhere_is_code_that_may_not_run():
    assert written("run_cell_magic('timeit', '-n1 x = 1', 'y = x')") == ["if False:\n    x = 1\n    y = x"]


def test_ipython_syntax_in_the_body_of_a_magic_is_written_out_too():
    body = "a = !echo $b\nif c:\n    %time d\n    !!ls {e}\nf, g.h = %sx $i\nx %= 2\ny = x % 2"
    assert [
        line
        for line in "\n".join(written(f"run_cell_magic('time', '', {body!r})")).split("\n")
        if "get_" not in line
    ] == [
        *("b", "if c:", "    d", "    e", "i", "x %= 2", "y = x % 2"),
    ]


def test_a_magic_that_runs_no_code_reads_only_what_its_line_expands():
    assert written("run_cell_magic('bash', '--out $a', 'echo $b {c}')") == ["a"]
    assert written("run_cell_magic('sx', '', 'echo $b {c}')") == ["b", "c"]


@pytest.mark.parametrize(
    "call", ["run_line_magic(name, line)", "run_cell_magic('a')", "ask_exit()", "system(x)"]
)
def test_other_calls_are_left_alone(call: str):
    assert written(call) == []


def test_a_cell_without_escapes_is_not_copied():
    tree = ast.parse("x = 1")
    assert write_out(tree) is tree


def test_code_is_analysed_without_the_libraries_of_the_notebook():
    modules = "names", "sources"
    imports = "\n".join(f"import nbshm.definitions.{name}" for name in modules)
    code = f"import sys\n{imports}\nprint(sorted({{'IPython', 'torch', 'numpy'}} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"
