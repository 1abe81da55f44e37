"""The imports that a worker repeats: modules, what has a home in one, and submodules that code reads."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Set as AbstractSet
from types import ModuleType
from typing import Any

from nbshm.attributes import attribute
from nbshm.definitions.standard_objects import home_of_the_only_one
from nbshm.jobs import Import
from nbshm.refusals import Unsendable


class Imports:
    """Collects the imports of a program; `steps` are in the order in which they were asked for."""

    def __init__(self) -> None:
        self._steps: dict[tuple[str, str | None], Import] = {}

    @property
    def steps(self) -> tuple[Import, ...]:
        """The imports that were written down."""
        return tuple(self._steps.values())

    def add(self, name: str, value: Any) -> bool:
        """Write an import down if the value is a module, or has a home in one; tell whether it is.

        Raises Unsendable for a module that a worker will not find.
        """
        if issubclass(type(value), ModuleType):
            _check(value)
            step = Import(module=value.__name__, name=name)
        else:
            home = importable_home(value)
            if home is None:
                return False
            step = Import(module=home[0], attribute=home[1], name=name)
        self._steps[step.module, name] = step
        return True

    def add_submodules(self, attributes: AbstractSet[str]) -> None:
        """Import what `import a.b` bound only as an attribute of a package: `scipy.stats` behind `scipy`.

        `attributes` are the names that the code reads from anything, dotted or not.
        """
        names = {name for attribute in attributes for name in attribute.split(".")}
        packages = [step.module for step in self.steps if step.attribute is None]
        while packages:
            package = packages.pop()
            found = [path for name in sorted(names) if (path := f"{package}.{name}") in sys.modules]
            packages += [path for path in found if (path, None) not in self._steps]
            self._steps.update({(path, None): Import(module=path) for path in found})


def importable_home(value: Any) -> tuple[str, str] | None:
    """Return the (module, name) by which a function, a class or what there is one of can be imported."""
    if (only := home_of_the_only_one(value)) is not None:
        return only
    module, name = attribute(value, "__module__"), attribute(value, "__qualname__")
    if type(module) is not str or type(name) is not str or module == "__main__" or "." in name:
        return None
    if not callable(value):
        return None
    home = sys.modules.get(module)
    if home is None or attribute(home, name) is not value or not can_be_imported(home):
        return None
    return module, name


def can_be_imported(module: ModuleType) -> bool:
    """Tell whether a worker will find the module: one that was made by hand has no spec to be found by."""
    if module.__name__ in sys.builtin_module_names:
        return True
    try:
        return importlib.util.find_spec(module.__name__) is not None
    except (ValueError, ImportError):
        return False


def _check(module: ModuleType) -> None:
    if module.__name__ != "__main__" and not can_be_imported(module):
        reason = f"the module {module.__name__!r} can't be imported in a worker"
        raise Unsendable(reason, "Import it from a file or a package.")
