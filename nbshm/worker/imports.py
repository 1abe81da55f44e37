"""Something to be done when a module is imported, whenever that is."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TypeAlias

Action: TypeAlias = Callable[[ModuleType], None]
Preparation: TypeAlias = Callable[[], Action]
"""What is done right before a module is executed; it returns what is to be done after."""


class ImportWatch(MetaPathFinder):
    """Finds no module itself; acts on those that others find, right after they have been executed.

    A worker sets up libraries that the notebook uses without importing them for cells that don't.
    """

    def __init__(self) -> None:
        self._preparations: dict[str, list[Preparation]] = {}
        sys.meta_path.insert(0, self)

    def close(self) -> None:
        """Watch no longer."""
        self._preparations.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def when_imported(self, name: str, action: Action) -> None:
        """Call an action with the module of that name: now if it is imported, else when it is."""
        self.around_import(name, lambda: action)

    def around_import(self, name: str, prepare: Preparation) -> None:
        """Prepare an action before the module of that name is executed, and call it after; or now."""
        if name in sys.modules:
            prepare()(sys.modules[name])
        else:
            self._preparations.setdefault(name, []).append(prepare)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002  # the signature of finders
        target: ModuleType | None = None,  # noqa: ARG002  # likewise
    ) -> ModuleSpec | None:
        """Return what the other finders find, prepared to act after it is executed."""
        preparations = self._preparations.pop(fullname, None)
        spec = importlib.util.find_spec(fullname) if preparations else None
        if spec is not None and spec.loader is not None and preparations is not None:
            _act_around(spec, preparations)
        return spec


def _act_around(spec: ModuleSpec, preparations: list[Preparation]) -> None:
    loader = spec.loader
    assert loader is not None  # noqa: S101  # the caller has seen to it
    execute = loader.exec_module

    def execute_and_act(module: ModuleType) -> None:
        vars(loader).pop("exec_module", None)  # once; a reload is the person's affair
        actions = [prepare() for prepare in preparations]
        execute(module)
        for action in actions:
            action(module)

    loader.exec_module = execute_and_act  # type: ignore[method-assign]  # a loader is made anew for each module
