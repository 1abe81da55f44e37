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


class ImportWatch(MetaPathFinder):
    """Finds no module itself; acts on those that others find, right after they have been executed.

    A worker sets up libraries that the notebook uses without importing them for cells that don't.
    """

    def __init__(self) -> None:
        self._actions: dict[str, list[Action]] = {}
        sys.meta_path.insert(0, self)

    def close(self) -> None:
        """Watch no longer."""
        self._actions.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def when_imported(self, name: str, action: Action) -> None:
        """Call an action with the module of that name: now if it is imported, else when it is."""
        if name in sys.modules:
            action(sys.modules[name])
        else:
            self._actions.setdefault(name, []).append(action)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002  # the signature of finders
        target: ModuleType | None = None,  # noqa: ARG002  # likewise
    ) -> ModuleSpec | None:
        """Return what the other finders find, prepared to act after it is executed."""
        actions = self._actions.pop(fullname, None)
        spec = importlib.util.find_spec(fullname) if actions else None
        if spec is not None and spec.loader is not None and actions is not None:
            _act_after(spec, actions)
        return spec


def _act_after(spec: ModuleSpec, actions: list[Action]) -> None:
    loader = spec.loader
    assert loader is not None  # noqa: S101  # the caller has seen to it
    execute = loader.exec_module

    def execute_and_act(module: ModuleType) -> None:
        vars(loader).pop("exec_module", None)  # once; a reload is the person's affair
        execute(module)
        for action in actions:
            action(module)

    loader.exec_module = execute_and_act  # type: ignore[method-assign]  # a loader is made anew for each module
