"""What fails before the first line of the cell runs is told as that, with the reason."""

from __future__ import annotations

import pytest

METHODS = ("forkserver", "spawn")  # under fork nothing has to be prepared

BROKEN_BY = {
    "an object whose __setstate__ raises": (
        """class Sour:
    def __getstate__(self):
        return {'a': 1}
    def __setstate__(self, state):
        raise RuntimeError('sour since Monday')
sour = Sour()""",
        "sour",
        "sour since Monday",
    ),
    "a class body that raises": (
        """class Only:
    assert os.getpid() == %d, 'only at home'""",
        "Only",
        "only at home",
    ),
    "a module that is not there for workers": (
        """import types
gone = types.ModuleType('gone_since')
gone.f = lambda: 1
sys.modules['gone_since'] = gone
import gone_since""",
        "gone_since.f()",
        "gone_since",
    ),
    "a module that can't be imported twice": (
        """Path('fragile.py').write_text('import os\\nassert os.getpid() == %d, "imported elsewhere"\\n')
sys.path.insert(0, here)
import fragile""",
        "fragile",
        "imported elsewhere",
    ),
    "a worker that dies while it unpickles": (
        """class Deadly:
    def __reduce__(self):
        return os._exit, (41,)
deadly = Deadly()""",
        "deadly",
        "exit code 41",
    ),
    "a worker that is killed while it unpickles": (
        """class Killer:
    def __reduce__(self):
        return eval, ("__import__('os').kill(__import__('os').getpid(), 9)",)
killer = Killer()""",
        "killer",
        "SIGKILL",
    ),
    "an object that exits while it unpickles": (
        """class Leaver:
    def __reduce__(self):
        return sys.exit, (4,)
leaver = Leaver()""",
        "leaver",
        "exit",
    ),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("what", BROKEN_BY)
def test_a_failure_while_preparing_is_told(traces, what, method):
    notebook = traces.kernel
    setup, use, words = BROKEN_BY[what]
    notebook.run(setup % traces.pid if "%d" in setup else setup).check()
    reply = notebook.run(f"%%parallel nprocs=2 start_method={method}\n{use}\n")
    assert reply.error, reply.text
    assert reply.error[0] in {"RankRaised", "RankDied", "CannotSend"}, reply.text
    assert words in reply.text
    if reply.error[0] == "RankRaised":
        assert "being prepared, before the cell's first line" in reply.text
    assert "[0, 1]" in notebook.run(f"%%parallel nprocs=2 start_method={method}\nrank").check().text


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("what", "line"),
    [("an object whose __setstate__ raises", 5), ("a class body that raises", 2)],
)
def test_a_failure_while_preparing_is_told_at_its_line_and_shows_no_frame_of_nbshm(
    traces, what, line, method
):
    notebook = traces.kernel
    setup, use, words = BROKEN_BY[what]
    number = notebook.run(
        f"{setup % traces.pid if '%d' in setup else setup}\nnumber = len(In) - 1"
    ).check() and (notebook.value("number"))
    reply = notebook.run(f"%%parallel nprocs=1 start_method={method}\n{use}\n")
    assert reply.error[0] == "RankRaised", reply.text
    assert f"In [{number}] line {line}" in reply.text
    assert words in reply.text
    assert "nbshm/" not in reply.text


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("use", "name"),
    [
        ("sours", "sours"),
        ("Holder", "Holder.sour"),
        ("hold", "hold.sour"),
        ("default", "default.sour"),
    ],
)
def test_a_value_that_cant_be_rebuilt_is_named_with_a_remedy(traces, use, name, method):
    setup, _, words = BROKEN_BY["an object whose __setstate__ raises"]
    traces.kernel.run(f"""{setup}
sours = {{"first": sour}}
class Holder: pass
Holder.sour = sour
def hold(): pass
hold.sour = sour
def default(sour=sour): pass
""").check()
    reply = traces.kernel.run(f"%%parallel nprocs=2 start_method={method}\n{use}\n")
    assert reply.error[0] == "RankRaised", reply.text
    assert f"{name!r} can't be rebuilt in another process: RuntimeError: {words}." in reply.text
    assert "Make it where it is used, or mend how its class is unpickled." in reply.text
    assert "contextlib" not in reply.text


@pytest.mark.parametrize("method", METHODS)
def test_a_module_that_is_gone_for_workers_is_told_without_a_place(traces, method):
    setup, use, _ = BROKEN_BY["a module that is not there for workers"]
    setup = setup.replace("gone = types", "import importlib.machinery\ngone = types", 1)
    setup += "\ngone.__spec__ = importlib.machinery.ModuleSpec('gone_since', None)"
    traces.kernel.run(setup).check()
    reply = traces.kernel.run(f"%%parallel nprocs=1 start_method={method}\n{use}\n")
    assert reply.error[0] == "RankRaised", reply.text
    assert "No module named 'gone_since'" in reply.text
    assert "importlib" not in reply.text
    assert "nbshm/" not in reply.text


@pytest.mark.parametrize(
    "source",
    ["if True print(rank)", "x = = 1", "return 1", "for i in range(3):\nprint(i)", "def f(:\n  pass"],
)
def test_a_syntax_error_names_its_line_and_starts_nothing(prepared, source):
    reply = prepared.run(f"%%parallel nprocs=2\nfirst = 1\n{source}\n")
    assert reply.error[0] in {"SyntaxError", "IndentationError"}, reply.text
    assert "line 3" in reply.text or "line 4" in reply.text, reply.text
