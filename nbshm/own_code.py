"""Which code is nbshm's own: none that a person should have to read about."""

from __future__ import annotations

import os

OWN_DIRECTORY = os.path.join(os.path.dirname(__file__), "")  # noqa: PTH118, PTH120  # compared with co_filename, a str
