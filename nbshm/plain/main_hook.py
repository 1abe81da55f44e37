"""Plain multiprocessing from cells: the notebook as the main module that a child needs.

A script's child finds the script's functions because multiprocessing sends the path of its file along and the
child runs that file as its `__main__`. A notebook has no file. So the preparation data that every spawned or
forkserver child gets carry an object which, unpickled in the child, builds `__main__` from the notebook's
definitions (see *Lifting and `__main__`* in `definitions/lifting.py`), and installs this hook for the child's
own children. Where the kernel's `__main__` does name a file (VS Code, Colab), that file is left out: a child
must not run it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from multiprocessing import spawn
from typing import TYPE_CHECKING, Any

from nbshm.default_start_method import start_method_kept
from nbshm.definitions.sources import name_in_notebook
from nbshm.import_path import import_path
from nbshm.jobs import Preparation
from nbshm.notebook.located_modules import located_modules
from nbshm.notebook.namespace import Notebook
from nbshm.plain.spawning import handing_over
from nbshm.replacing import Replacement
from nbshm.wire.named import call

if TYPE_CHECKING:
    from nbshm.packing import Needs

_PREPARE = "nbshm.worker.children:prepare"


class MainHook(Replacement):
    """Sends the notebook's definitions to the children of plain multiprocessing while it is installed.

    `multiprocessing.spawn.get_preparation_data` is the one place through which the start methods spawn and
    forkserver ask for what a child needs before its work; it is replaced as long as the hook is installed.
    `keeper()` tells children where what they put on queues is kept (see `wire/kept.py`), None if nowhere.
    """

    def __init__(self, notebook: Notebook, *, keeper: Callable[[], str | None]) -> None:
        self._notebook = notebook
        self._keeper = keeper
        super().__init__(spawn, "get_preparation_data", self.preparation_data)

    def preparation_data(self, name: str) -> dict[str, Any]:
        """Return what a child is prepared with, the notebook's main module included."""
        with start_method_kept():
            data = dict(self.original(name))
        if sys.modules.get("__main__") is not None and self._is_notebook():
            data.pop("init_main_from_name", None)
            data.pop("init_main_from_path", None)
            if name != "ignore":  # what the forkserver itself asks with, for its own sys.path
                # The standard library's has the directory in which the kernel was started, not today's.
                data["sys_path"] = import_path()
                data["nbshm_sys_path"] = _AppliedAhead(sys_path=data["sys_path"])
                data["nbshm_main"] = MainModule(self._notebook, keeper=self._keeper())
        return data

    def _is_notebook(self) -> bool:
        return vars(sys.modules["__main__"]) is self._notebook.namespace


class _AppliedAhead:
    """Preparation data that the child applies while it unpickles the rest.

    What comes after needs `sys.path`: nbshm itself may be on it by the notebook's doing alone.
    """

    def __init__(self, **data: Any) -> None:
        self._data = data

    def __reduce__(self) -> tuple[Any, ...]:
        return spawn.prepare, (self._data,)


class MainModule:
    """The notebook's definitions on their way to a child; unpickling it there builds `__main__`.

    Everything is pickled inside `__reduce__`, as nested bytes: that is called while the process is being
    created, the only time when locks, queues and tensors can be pickled.
    """

    def __init__(self, notebook: Notebook, *, keeper: str | None) -> None:
        self._notebook = notebook
        self._keeper = keeper

    def __reduce__(self) -> tuple[Any, ...]:
        from nbshm.memory.picklers import ChildPickler  # noqa: PLC0415  # loaded when the first child starts
        from nbshm.packing import pack  # noqa: PLC0415  # likewise: most children start none

        with handing_over() as descriptors:

            def make_pickler(reference: Callable[[Any], Any]) -> ChildPickler:
                descriptors.take_back()
                return ChildPickler(reference=reference, check=descriptors.check)

            packed = pack(definitions(self._notebook), self._notebook, make_pickler)
        preparation = Preparation(
            program=packed.program,
            located=located_modules(),
            cells=dict(self._notebook.cells),
            strategy=_strategy(),
            keeper=self._keeper,
        )
        return call, (_PREPARE, preparation)


def definitions(notebook: Notebook) -> Needs:
    """Return the needs of a child whose work is not known: every definition that can travel."""
    from nbshm.packing import Needs  # noqa: PLC0415  # likewise

    names = {
        name: "a child process"
        for name, value in list(notebook.namespace.items())
        if name_in_notebook(value) is not None
    }
    return Needs(names=names, all_optional=True)


def _strategy() -> str | None:
    """Return torch's sharing strategy if the person has chosen it; torch does not pass it on to children."""
    if "torch.multiprocessing" not in sys.modules:
        return None
    from nbshm.memory.tensors.strategies import default_strategy, strategy  # noqa: PLC0415  # torch is there already

    return None if strategy() == default_strategy() else strategy()
