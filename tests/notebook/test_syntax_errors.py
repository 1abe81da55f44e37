"""A parallel cell that does not compile is shown like any cell that does not."""

from __future__ import annotations

import pytest
from kernels import Kernel


@pytest.mark.parametrize(
    ("name", "body", "shown"),
    [
        ("SyntaxError", "touched[rank] = 1\nx = = 3", "line 3\n    x = = 3\n        ^\n{}: invalid syntax"),
        ("SyntaxError", "x = 1\nreturn 5", "line 3\n    return 5\n    ^\n{}: 'return' outside function"),
        (
            "IndentationError",
            "for x in touched:\n        y = 1\n    y = 2",  # found before it is compiled
            "line 4\n    y = 2\n    ^\n{}: unindent does not match any outer indentation level",
        ),
        (
            "IndentationError",
            "if rank:\ny = 2",
            "line 3\n    y = 2\n    ^\n{}: expected an indented block after 'if' statement on line 2",
        ),
        (
            "TabError",
            "if rank:\n\ty = 2\n        y = 3",
            "line 4\n    y = 3\n    ^\n{}: inconsistent use of tabs and spaces in indentation",
        ),
    ],
)
@pytest.mark.parametrize("options", ["nprocs=2", "nprocs=2 background=job"])
def test_only_the_cells_line_is_shown_and_nothing_is_started(
    shared_notebook: Kernel, options: str, name: str, body: str, shown: str
) -> None:
    shared_notebook.run("import numpy as np; touched = np.zeros(2)").check()
    reply = shared_notebook.run(f"%%parallel {options}\n{body}")
    assert reply.error is not None
    kind, _, traceback = reply.error
    assert kind == name
    assert "Cell In[" in traceback
    assert shown.format(name) in traceback
    assert "nbshm" not in traceback
    assert shared_notebook.value("touched.tolist()") == [0.0, 0.0]


def test_an_own_handler_of_the_person_is_left_alone(shared_notebook: Kernel) -> None:
    shared_notebook.run(
        "%unload_ext nbshm\n"
        "get_ipython().set_custom_exc((ZeroDivisionError,), lambda *_, **__: print('mine'))\n"
        "%load_ext nbshm"
    ).check()
    assert "mine" in shared_notebook.run("1 / 0").stdout
    shared_notebook.run("get_ipython().set_custom_exc((), None)").check()
