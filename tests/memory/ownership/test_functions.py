"""What functions of the notebook hold."""

from __future__ import annotations

from types import FunctionType

from nbshm.memory.ownership.functions import held_by


def made(module: str) -> FunctionType:
    kept, dropped = "kept", "dropped"

    def function(a, b=1, *, c=2):
        return kept, dropped, a, b, c  # noqa: F821  # a variable that was deleted is an empty cell

    function.note = 3
    function.__module__ = module
    del dropped
    return function


def test_defaults_variables_of_the_closure_and_attributes_have_their_names():
    assert dict(held_by(made("__main__"))) == {"b": 1, "c": 2, "kept": "kept", "note": 3}


def test_functions_of_files_are_not_looked_into():
    assert list(held_by(made("helpers"))) == []
