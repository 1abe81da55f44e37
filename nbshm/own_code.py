"""Which code is nbshm's own, none that a person should have to read about; and which a library's."""

from __future__ import annotations

import os
import sys
import sysconfig
from types import ModuleType
from typing import Any

from nbshm.attributes import attribute

OWN_DIRECTORY = os.path.join(os.path.dirname(__file__), "")  # noqa: PTH118, PTH120  # compared with co_filename, a str

OWN_PLACE = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120  # an entry of sys.path
"""The directory in which an import finds nbshm."""

_LIBRARIES = tuple(
    os.path.join(path, "")  # noqa: PTH118  # as above
    for path in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)

# Wherever these are: a person's own, Debian's and those on PYTHONPATH are in none of the directories above.
_INSTALLED = tuple(os.path.join(os.sep, name, "") for name in ("site-packages", "dist-packages"))  # noqa: PTH118  # as above

_dictionary_of = vars(ModuleType)["__dict__"].__get__  # a module may load itself when it is asked for it


def is_library(filename: str) -> bool:
    """Tell whether code is not the person's own: installed, of Python itself, or not in any file."""
    return filename.startswith((*_LIBRARIES, "<frozen ")) or any(part in filename for part in _INSTALLED)


def is_of_python(filename: str) -> bool:
    """Tell whether code is Python's own."""
    return is_library(filename) and not any(part in filename for part in _INSTALLED)


def is_the_persons(filename: str) -> bool:
    """Tell whether code is the person's: neither nbshm's own nor a library's."""
    return not (filename.startswith(OWN_DIRECTORY) or is_library(filename))


def is_module_of_the_persons(name: Any) -> bool:
    """Tell whether a module is the notebook or comes from a file of the person's, by its name.

    A name is whatever stands where one should; no code of the module's runs.
    """
    if type(name) is not str:
        return False
    file = without_loading(sys.modules.get(name), "__file__")
    return name == "__main__" or (type(file) is str and is_the_persons(file))


def library_of(definition: Any) -> str:
    """Return the package that a class or a function says it is of, without what is below that.

    A class may have anything there.
    """
    return str(attribute(definition, "__module__")).partition(".")[0]


def without_loading(module: Any, name: str) -> Any:
    """Return what a module has by that name, None if it has not, or is no module; none of its code runs."""
    return _dictionary_of(module).get(name) if issubclass(type(module), ModuleType) else None
