"""Which code is nbshm's own, none that a person should have to read about; and which a library's."""

from __future__ import annotations

import os
import sysconfig

OWN_DIRECTORY = os.path.join(os.path.dirname(__file__), "")  # noqa: PTH118, PTH120  # compared with co_filename, a str

_LIBRARIES = tuple(
    os.path.join(path, "")  # noqa: PTH118  # as above
    for path in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


def is_library(filename: str) -> bool:
    """Tell whether code is not the person's own: installed, of Python itself, or not in any file."""
    return filename.startswith((*_LIBRARIES, "<frozen "))


def is_the_persons(filename: str) -> bool:
    """Tell whether code is the person's: neither nbshm's own nor a library's."""
    return not (filename.startswith(OWN_DIRECTORY) or is_library(filename))
