"""Process objects on their way to their children, so that a child can tell why one can't be unpickled.

The standard library's child unpickles its process object before anybody listens to it: what fails there (a
`__setstate__` that raises, an import that is not there) is a traceback on stderr and the exit code 1, and
whoever waits for a word of the child's hears none. So what can surely be unpickled is written first, with the
same memo: who the process is, and those of its arguments by which libraries hear of failures (queues, pipes,
the names of files). `nbshm/worker/envelopes.py` opens the envelope.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from multiprocessing import reduction
from multiprocessing.process import BaseProcess
from typing import Any

from nbshm.notebook.namespace import Notebook
from nbshm.own_code import library_of
from nbshm.replacing import Replacement
from nbshm.wire.named import call


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a child knows of its process object when the rest can't be unpickled.

    `facts` are attributes of it. `target` is a library's function, else None; its arguments are as they were
    given, or `Withheld` where they may contain anything.
    """

    facts: dict[str, Any]
    target: Callable[..., Any] | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


NOTHING = Known(facts={}, target=None, args=(), kwargs={})
"""Where not even that can be known."""


class Withheld:
    """Stands for an argument that may contain anything."""


class Envelopes(Replacement):
    """Puts process objects into envelopes while it is installed."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook
        super().__init__(reduction, "dump", self.dump)

    def dump(self, value: Any, file: Any, protocol: int | None = None) -> None:
        """Write a value to a file, in an envelope if it is a process."""
        is_process = isinstance(value, BaseProcess)
        self.original(_Enclosed(value, self._notebook.cells) if is_process else value, file, protocol)


class _Enclosed:
    """A process object that is pickled already; unpickled in its child this is the process itself."""

    def __init__(self, process: BaseProcess, cells: Mapping[str, int]) -> None:
        self._cells = dict(cells)
        stream = io.BytesIO()
        pickler = reduction.ForkingPickler(stream)
        try:
            pickle.Pickler.dump(pickler, _known(process))
        except Exception:  # noqa: BLE001  # raised again below, in words for the whole
            stream.seek(stream.truncate(0))
            pickler.clear_memo()  # else what was half written counts as written
            pickle.Pickler.dump(pickler, NOTHING)
        pickler.dump(process)
        self._pickled = stream.getvalue()

    def __reduce__(self) -> tuple[Any, ...]:
        return call, (_OPENED, self._pickled, self._cells)


_OPENED = "nbshm.worker.envelopes:opened"
_FACTS = {"_identity", "_config", "_parent_pid", "_parent_name", "_name"}
_OWN_WAYS = {"__reduce__", "__reduce_ex__", "__getstate__"}
_LIBRARIES = {"multiprocessing", "concurrent", "torch"}
_HARMLESS = (type(None), bool, int, float, str, bytes)


def _known(process: BaseProcess) -> Known:
    state = vars(process)
    facts = {name: value for name, value in state.items() if name in _FACTS}
    if any(not _OWN_WAYS.isdisjoint(vars(kind)) for kind in type(process).mro()[:-1]):
        return replace(NOTHING, facts=facts)  # it may not send what it was given
    target = state.get("_target")
    return Known(
        facts=facts,
        target=target if library_of(target) in _LIBRARIES else None,
        args=tuple(_if_harmless(one) for one in state.get("_args", ())),
        kwargs={name: _if_harmless(one) for name, one in state.get("_kwargs", {}).items()},
    )


def _if_harmless(argument: Any) -> Any:
    kind = type(argument)
    is_means = library_of(kind) in _LIBRARIES and any(
        library_of(base) == "multiprocessing" for base in kind.mro()
    )
    return argument if is_means or kind in _HARMLESS else Withheld()
