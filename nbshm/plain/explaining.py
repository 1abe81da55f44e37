"""Plain multiprocessing's pickling errors in words that name what can't be sent and say what to do.

Everything that a notebook's code sends to another process, when it starts one and through queues and pools,
goes through `ForkingPickler`. What fails there is raised as it would be, with another message.
"""

from __future__ import annotations

import contextlib
import io
import pickle
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from nbshm.attributes import attribute, found_at
from nbshm.notebook.namespace import Notebook
from nbshm.parts import steps_to
from nbshm.words import line_in_words, with_article

if TYPE_CHECKING:
    from nbshm.refusals import Culprit


class Explaining:
    """Gives pickling errors their words while it is installed."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook

    def install(self) -> None:
        """Put a method before the one that `ForkingPickler` inherits."""
        if _DUMP not in vars(ForkingPickler):

            def dump(pickler: ForkingPickler, value: Any) -> None:
                try:
                    pickle.Pickler.dump(pickler, value)
                except Exception as error:
                    if _is_a_picklers(error):
                        with contextlib.suppress(Exception):  # of parts of foreign classes: then as it is
                            error.args = (self.explain(value, error),)
                    raise

            setattr(ForkingPickler, _DUMP, dump)

    def remove(self) -> None:
        """Undo `install`."""
        if _DUMP in vars(ForkingPickler):
            delattr(ForkingPickler, _DUMP)

    def explain(self, value: Any, error: Exception) -> str:
        """Return a sentence about what of a value can't be pickled, and one about what to do."""
        found = _culprit(value, error)
        path = found.path if isinstance(value, BaseProcess) else ""  # in a message nobody would know the way
        kind = found.value if isinstance(found.value, (FunctionType, type)) else type(found.value)
        name = path if kind is not found.value and path else str(attribute(kind, "__qualname__"))
        reason, remedy = self._reason(name, found.value, found.error)
        return f"cannot send {name!r} to another process: {reason}. {remedy}"

    def _reason(self, name: str, culprit: Any, error: Exception) -> tuple[str, str]:
        for words, remedy in _OF_MULTIPROCESSING.items():
            if words in str(error):
                return str(error).partition(". ")[0], remedy
        if not isinstance(culprit, (FunctionType, type)):
            return self._reason_of_value(name, culprit, error)
        where = self._where(attribute(culprit, "__code__"))
        if "<lambda>" in name:
            return f"a lambda{where} can't be found by its name there", "Define it with def, in a cell."
        if "<locals>" in name:
            return f"it is defined inside a function{where}", "Define it at the top level of a cell."
        return self._reason_of_name(name, culprit)

    def _reason_of_name(self, name: str, culprit: Any) -> tuple[str, str]:
        there = found_at(name, self._notebook.namespace)
        if there is None:
            return f"the notebook has nothing of the name {name!r}", f"Bind it to {name!r}."
        if there is culprit:  # `functools.wraps` copies the module
            module = attribute(culprit, "__module__")
            reason = f"it says that it is of the module {module!r}, which has another"
            return reason, f"Set {name}.__module__ = '__main__'."
        if steps_to(culprit, there):
            made = with_article(type(there).__qualname__)
            return (
                f"it is the function inside of {made} by that name",
                f"Send a function that calls {name}.",
            )
        return f"the notebook has another {name!r} by now", "Send that one, or give this one a name."

    def _reason_of_value(self, name: str, value: Any, error: Exception) -> tuple[str, str]:
        kind = type(value)
        if kind.__module__ == "__main__" and "<locals>" in kind.__qualname__:
            reason = f"its class {kind.__qualname__!r} is defined inside a function"
            return reason, "Define the class at the top level of a cell."
        if self._has_another(kind):
            reason = f"its class {kind.__qualname__!r} has been defined again since it was made"
            return reason, "Make it again."
        from nbshm.refusals import Culprit, explain  # noqa: PLC0415  # in a child it is rarely needed

        reason, remedy = explain(Culprit(path=name, value=value, error=error))
        for words, others in _ELSEWHERE.items():
            remedy = remedy.replace(words, others)
        return reason, remedy

    def _has_another(self, kind: type) -> bool:
        """Tell whether the notebook has another class in the place of one of its own."""
        there = found_at(kind.__qualname__, self._notebook.namespace)
        return kind.__module__ == "__main__" and isinstance(there, type) and there is not kind

    def _where(self, code: Any) -> str:
        cell = self._notebook.cells.get(code.co_filename) if isinstance(code, CodeType) else None
        return "" if cell is None else f" ({line_in_words(code.co_firstlineno, cell)})"


_DUMP = "dump"
_ELSEWHERE = {"inside the cell": "in the function that runs there", "nbshm.lock(), or ": ""}
"""What remedies for parallel cells say, in the words for plain multiprocessing."""

_OF_MULTIPROCESSING = {
    "through inheritance": (
        "Pass it to the process as an argument when it is started, to a pool by initializer and initargs, "
        "or use a Manager's."
    ),
    "created in a fork context": (
        'Make it with the context of the process: mp.get_context("spawn").Lock(), Queue(), Event(), ...'
    ),
}
"""What to do where multiprocessing itself has said why."""


def _is_a_picklers(error: Exception) -> bool:
    """Tell whether an error is one that picklers themselves raise, with a message that can be replaced."""
    says = str(error)
    is_usual = type(error) in {pickle.PicklingError, AttributeError, TypeError}
    return is_usual or any(words in says for words in _OF_MULTIPROCESSING)


def _culprit(value: Any, error: Exception) -> Culprit:
    """Return what of a value can't be pickled; of a process, what of all that it was given."""
    from nbshm.refusals import culprit_in  # noqa: PLC0415  # likewise

    path = ""
    for step, part in _given(value) if isinstance(value, BaseProcess) else ():
        try:
            _pickle(part)
        except Exception as problem:  # noqa: BLE001, PERF203  # whatever its own pickling raises
            path, value, error = step, part, problem
            break
    return culprit_in(path, value, error, _pickle, is_whole=_is_whole)


def _pickle(value: Any) -> None:
    pickle.Pickler.dump(ForkingPickler(io.BytesIO()), value)


def _given(process: BaseProcess) -> Iterator[tuple[str, Any]]:
    """Yield what a process was given, and what a class of the notebook's has put on it."""
    state = vars(process)
    yield "target", state.get("_target")
    yield from ((f"args[{index}]", one) for index, one in enumerate(state.get("_args", ())))
    yield from ((f"kwargs[{key!r}]", one) for key, one in state.get("_kwargs", {}).items())
    kind = type(process).__qualname__
    yield from ((f"{kind}.{name}", one) for name, one in state.items() if not name.startswith("_"))


def _is_whole(value: Any) -> bool:
    """Tell whether a value is refused as it is, whatever its parts are."""
    module = attribute(type(value), "__module__")
    return isinstance(value, (FunctionType, type, BaseProcess)) or str(module).startswith("multiprocessing.")
