"""What code in a worker can't do because nobody sits at it: asking, debugging, starting a parallel cell."""

from __future__ import annotations

import builtins
import contextlib
import getpass
import os
import pdb  # noqa: T100  # to refuse it
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from nbshm.replacing import replaced

_NOBODY = "several processes run the cell at once, and none of them has a keyboard"
_ASK = "Ask in a cell of its own, and use the variable with the answer here."
_DEBUG = "Run the failing call in a cell without %%parallel: rank and nprocs can be set there by hand."


class RefusedInWorker(RuntimeError):  # noqa: N818  # the name is the condition
    """What was called can't work in a parallel cell; the message says why and what to do."""


def refusal(what: str) -> str:
    """Say why a magic of that name can't be used in a parallel cell, and what to do."""
    if what == "parallel":
        return (
            "%%parallel can't be used in a parallel cell: this code already runs in one of its workers. "
            "Give the cell more processes (nprocs=), or use multiprocessing in it."
        )
    return f"%{what} can't be used in a parallel cell: {_NOBODY}. {_DEBUG}"


@contextlib.contextmanager
def nobody_at_the_keyboard() -> Iterator[None]:
    """Make `input`, `getpass`, `breakpoint` and pdb say why they can't work, while this is entered."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced(builtins, "input", _refuse("input()", _ASK)))
        stack.enter_context(replaced(getpass, "getpass", _refuse("getpass()", _ASK)))
        stack.enter_context(replaced(pdb, "set_trace", _refuse("pdb.set_trace()", _DEBUG)))
        stack.enter_context(replaced(pdb, "post_mortem", _refuse("pdb.post_mortem()", _DEBUG)))
        if os.environ.get("PYTHONBREAKPOINT") != "0":  # "0" makes breakpoint() do nothing: nothing to refuse
            stack.enter_context(replaced(sys, "breakpointhook", _refuse("breakpoint()", _DEBUG)))
        yield


def _refuse(call: str, remedy: str) -> Callable[..., NoReturn]:
    def refused(*_: Any, **__: Any) -> NoReturn:
        raise RefusedInWorker(f"{call} can't be used in a parallel cell: {_NOBODY}. {remedy}")

    return refused
