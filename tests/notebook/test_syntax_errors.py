"""A parallel cell that does not compile is shown like any cell that does not."""

from __future__ import annotations

import pytest
from kernels import Kernel


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("touched[rank] = 1\nx = = 3", "line 3\n    x = = 3\n        ^\nSyntaxError: invalid syntax"),
        ("x = 1\nreturn 5", "line 3\n    return 5\n    ^\nSyntaxError: 'return' outside function"),
    ],
)
def test_only_the_cells_line_is_shown_and_nothing_is_started(
    shared_notebook: Kernel, body: str, shown: str
) -> None:
    shared_notebook.run("import numpy as np; touched = np.zeros(2)").check()
    reply = shared_notebook.run(f"%%parallel nprocs=2\n{body}")
    assert reply.error is not None
    name, _, traceback = reply.error
    assert name == "SyntaxError"
    assert shown in traceback
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
