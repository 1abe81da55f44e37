"""Which functions and classes are the notebook's, and which the person's: by their code, not by `__module__`.

`functools.wraps` gives a function of the notebook the `__module__` of what it wraps, a library's. Its code
reads the notebook's names all the same. None of their code runs here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from nbshm.attributes import attribute, followed, members_of, mro_of
from nbshm.own_code import is_module_of_the_persons, without_loading

_MAIN = "__main__"


def is_notebooks(definition: Any) -> bool:
    """Tell whether a function or a class is the notebook's; of anything else, whether it says so itself."""
    if type(definition) is FunctionType:
        return is_notebooks_function(definition)
    if issubclass(type(definition), type):
        return is_notebooks_class(definition)
    return bool(attribute(definition, "__module__") == _MAIN)


def is_notebooks_function(function: FunctionType) -> bool:
    """Tell whether a function reads the notebook's names, or says that it stands for one that does."""
    return function.__module__ == _MAIN or reads_notebook(function)


def reads_notebook(function: FunctionType) -> bool:
    """Tell whether the globals of a function are the notebook's."""
    try:  # by subscript: what a rank has given back has the notebook's names behind its own
        return bool(function.__globals__["__name__"] == _MAIN)
    except KeyError:
        return False


def is_notebooks_class(kind: type) -> bool:
    """Tell whether a class itself is the notebook's.

    One whose functions are is, unless its module has it: a library's with a method that was replaced.
    """
    if members_of(kind).get("__module__") == _MAIN:
        return True
    return not is_modules_own(kind) and any(map(reads_notebook, _functions(kind)))


def is_of_notebook(kind: type) -> bool:
    """Tell whether a class is the notebook's, or derived from one that is."""
    return any(map(is_notebooks_class, mro_of(kind)))


def is_own(kind: type) -> bool:
    """Tell whether a class is the person's, of the notebook or a file, or derived from one that is."""
    return any(map(is_persons_class, mro_of(kind)))


def is_persons_class(kind: type) -> bool:
    """Tell whether a class itself is the person's, of the notebook or a file."""
    return is_module_of_the_persons(members_of(kind).get("__module__")) or is_notebooks_class(kind)


def is_modules_own(definition: Any) -> bool:
    """Tell whether a definition is what a module other than the notebook has under its name.

    There pickle finds it.
    """
    module, path = attribute(definition, "__module__"), attribute(definition, "__qualname__")
    if type(module) is not str or type(path) is not str or module == _MAIN:
        return False
    root, *rest = path.split(".")
    return followed(without_loading(sys.modules.get(module), root), rest) is definition


def _functions(kind: type) -> Iterator[FunctionType]:
    """Yield the functions of a class, those behind the three usual descriptors too."""
    for member in members_of(kind).values():
        is_method = type(member) in {staticmethod, classmethod}
        inner = member.__func__ if is_method else member.fget if type(member) is property else member
        if type(inner) is FunctionType:
            yield inner
