"""Opening the envelope with a child's process object (see `nbshm/plain/envelopes.py`).

A process that can't be unpickled is replaced by one that fails with the reason where its work would begin:
then the pool, the executor, torch or the DataLoader that started it tells that, as it tells any failure, and
of a plain process it is what its stderr says.
"""

from __future__ import annotations

import io
import pickle
import sys
import traceback
from collections.abc import Mapping
from multiprocessing.context import Process
from multiprocessing.process import BaseProcess
from typing import Any

from nbshm.plain.envelopes import NOTHING, Known, Withheld
from nbshm.words import line_in_words
from nbshm.worker.stand_ins import failing


def opened(pickled: bytes, cells: Mapping[str, int]) -> BaseProcess:
    """Return the process object, or one that fails with what unpickling it raised.

    `cells` are the numbers of the notebook's cells by file name.
    """
    unpickler = pickle.Unpickler(io.BytesIO(pickled))
    known: Known = NOTHING
    try:
        known = unpickler.load()
        process: BaseProcess = unpickler.load()
    except Exception as error:  # noqa: BLE001  # told by whoever runs the process
        _explain(error, cells)
        return _failing(known, error)
    return process


def _explain(error: Exception, cells: Mapping[str, int]) -> None:
    """Note what was under way, and the line of the notebook that could not do it, where there is one."""
    where = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if (file := frame.f_code.co_filename) in cells:
            where = f", {line_in_words(line, cells[file])}"
    note = f"({_NOTE.format(where=where)})"
    if sys.version_info >= (3, 11):  # notes are new there
        error.add_note(note)
    elif len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n{note}",)


_NOTE = (
    "It was raised while a new process unpickled its target and arguments{where}. "
    "Make what can't be unpickled in the function that runs there."
)


def _failing(known: Known, error: Exception) -> BaseProcess:
    reason = failing(error)

    def given(argument: Any) -> Any:
        return reason if isinstance(argument, Withheld) else argument

    process = Process(
        target=reason if known.target is None else known.target,
        args=tuple(given(one) for one in known.args),
        kwargs={name: given(one) for name, one in known.kwargs.items()},
    )
    vars(process).update(known.facts)
    return process
