"""What a person can do in the notebook about an error in a rank, where that is known."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from types import FunctionType
from typing import Any

from nbshm.attributes import attribute
from nbshm.definitions.names import nested_code
from nbshm.failures.reports import Raised, RankFailure
from nbshm.failures.tracebacks import ExceptionReport
from nbshm.notebook.namespace import Notebook
from nbshm.own_code import is_of_python, library_of
from nbshm.packing.reached_code import definitions_behind
from nbshm.words import without_colours

_CUDA_AFTER_FORK = "Cannot re-initialize CUDA in forked subprocess"  # says torch
_CANT_GROW = "Trying to resize storage that is not resizable"  # likewise

_MISSING = {
    "NameError": re.compile(r"name '(\w+)' is not defined"),
    "AttributeError": re.compile(r"module '__main__' has no attribute '(\w+)'"),
    "ImportError": re.compile(r"cannot import name '(\w+)' from '__main__'"),
}
_MISSING_IN_A_TEXT = re.compile(r"local variable '(\w+)' is not defined")  # says pandas of `@x` in a query
_MISSING_COLUMN = "UndefinedVariableError"  # in which pandas says so, and of a column `x` too

_MISSING_ATTRIBUTE = re.compile(r"'(\w+)' object has no attribute '(\w+)'")

_ABOUT_OTHER_THINGS = frozenset({"AssertionError", "AttributeError", "FileNotFoundError", "TypeError"})

_TOLD = re.compile(r"""['"`](\w+)['"`]|\b(?:name|table):? (\w+)""")
"""Words that a message tells as names: `KeyError: 'x'`, `Table with name x does not exist`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What is known of a run that may say more about its errors.

    `sent` are the notebook's names that the ranks have, `texts` the string constants in the cell's code.
    """

    notebook: Notebook
    sent: AbstractSet[str]
    texts: tuple[str, ...]

    def added_to(self, failure: RankFailure) -> RankFailure:
        """Return a failure with what the person can do about it, if anything is known."""
        hint = next(self._hints(failure.report), None) if isinstance(failure, Raised) else None
        if not isinstance(failure, Raised) or hint is None:
            return failure
        report = replace(failure.report, rendered=f"{failure.report.rendered.rstrip()}\n{hint}")
        return replace(failure, report=report)

    def _hints(self, report: ExceptionReport) -> Iterator[str]:
        yield from _about_cuda(report)
        yield from _about_missing_attribute(report)
        yield from _about_growing(report)
        for each in _with_causes(report):
            yield from self._about_missing_name(each)
        if report.type_name != _MISSING_COLUMN:
            for each in filter(_may_read_texts, _with_causes(report)):
                yield from self._about_names_in_texts(each)

    def _about_missing_name(self, report: ExceptionReport) -> Iterator[str]:
        """Say where a name is that a rank misses: in the notebook, or gone with the ranks of a cell."""
        name, notebook = _missing_name(report), self.notebook
        if name in notebook.namespace and name not in self.sent:
            unseen = "but nothing in the cell shows that it is used"
            yield f"The notebook has {name!r}, {unseen}. Add send={name}."
        if name in notebook.bound_in_ranks and name not in notebook.namespace:
            yield (
                f"{notebook.bound_in_ranks[name]} bound {name!r} in its ranks only, which have ended. "
                f"Bind it (or import it) in a cell without %%parallel, in this one, or by out={name} there."
            )

    def _about_names_in_texts(self, report: ExceptionReport) -> Iterator[str]:
        """Say which name of the notebook a library has looked for in vain that takes names from texts."""
        told = dict.fromkeys(one or other for one, other in _TOLD.findall(report.message))
        names = [name for name in told if self.notebook.has(name) and name not in self.sent]
        for name in names:
            texts = chain(self.texts, _texts_behind(self.sent, self.notebook.namespace))
            if _is_used(name, texts):
                yield (
                    f"The notebook has {name!r}, which the ranks have not got: names in texts are not sent. "
                    f"If a text means that one, add send={name}."
                )


def _about_cuda(report: ExceptionReport) -> Iterator[str]:
    """Say why CUDA can't be used in a forked rank, though it was not initialised in the notebook."""
    if report.message.startswith(_CUDA_AFTER_FORK):
        yield (
            "The notebook has asked for its GPUs (torch.cuda.is_available() does that), and no process that "
            "is forked from it can use them then. Use start_method=forkserver or spawn."
        )


def _about_growing(report: ExceptionReport) -> Iterator[str]:
    """Say which memory can't be resized, and how what is to grow gets other memory."""
    if report.message.startswith(_CANT_GROW):
        yield (
            "A parallel cell moves the notebook's tensors to shared memory, where they can't grow (resize_, "
            "out=..., an observer in its first batch). Before the cell make a copy that has its size: "
            "x = x.clone(), or net = copy.deepcopy(net) and a batch through it."
        )


def _about_missing_attribute(report: ExceptionReport) -> Iterator[str]:
    """Say who has given a library's class an attribute in the notebook: an accessor's module, a decorator."""
    found = _MISSING_ATTRIBUTE.search(report.message)
    if report.type_name != "AttributeError" or found is None:
        return
    kind, name = found.groups()
    for giver in _givers(kind, name):
        yield (
            f"In the notebook {giver} has given {kind} its {name!r}; ranks import libraries afresh. "
            f"Name {giver} in the cell (or import it there), or repeat there the call that has done it."
        )


def _givers(kind: str, name: str) -> Iterator[str]:
    """Yield what has set an attribute of an imported class: another library, a definition of the notebook."""
    for module in list(sys.modules.values()):
        found = (attribute(module, "__dict__") or {}).get(kind)
        for base in found.__mro__ if isinstance(found, type) else ():
            library = library_of(base)
            for part in _parts(vars(base).get(name)):
                if library_of(part) != library:
                    yield part.__name__ if library_of(part) == "__main__" else library_of(part)


def _parts(value: Any) -> Iterator[Any]:
    """Yield the functions and classes that an attribute is, or that an accessor holds."""
    held = attribute(value, "__dict__") or {}
    return (part for part in (value, *held.values()) if isinstance(part, (type, FunctionType)))


def _may_read_texts(report: ExceptionReport) -> bool:
    """Tell whether code has raised that may take names from texts.

    A key that a cell, the standard library or pandas misses is no name; and other errors quote words, too.
    """
    if not report.frames or report.type_name in _ABOUT_OTHER_THINGS:
        return False
    last = report.frames[-1]
    return last.cell is None and not is_of_python(last.filename) and "/pandas/" not in last.filename


def _with_causes(report: ExceptionReport | None) -> Iterator[ExceptionReport]:
    while report is not None:
        yield report
        report = report.cause


def _missing_name(report: ExceptionReport) -> str | None:
    """Return the notebook's name that an error tells of, also one of code that takes names from texts."""
    if report.type_name == "KeyError" and "globals()" in without_colours(report.rendered):
        return report.message.strip("'\"")
    found = _MISSING.get(report.type_name, _MISSING_IN_A_TEXT).search(report.message)
    return found[1] if found else None


def _texts_behind(names: Iterable[str], namespace: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts that names are bound to, and the string constants in functions that they lead to."""
    seen = set[int]()
    for value in [namespace[name] for name in sorted(names) if name in namespace]:
        if type(value) is str:
            yield value
        for definition in definitions_behind(value, namespace, seen):
            if isinstance(definition, FunctionType):
                yield from (constant for constant in _constants(definition) if type(constant) is str)


def _constants(function: FunctionType) -> Iterator[Any]:
    return chain.from_iterable(code.co_consts for code in nested_code(function.__code__))


def _is_used(name: str, texts: Iterable[str]) -> bool:
    """Tell whether a text uses a name beside other things: one that is nothing else is a key of something."""
    return any(re.search(rf"\b{name}\b", text) and text.strip() != name for text in texts)
