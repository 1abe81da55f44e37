"""Waiting for what workers leave as files."""

from __future__ import annotations

import time
from pathlib import Path


def wait_for_files(directory: Path, *names: str, seconds: float = 60) -> None:
    """Wait until workers have made these files."""
    limit = time.monotonic() + seconds
    while not all((directory / name).exists() for name in names):
        assert time.monotonic() < limit, f"{names} did not come; there are {sorted(directory.iterdir())}"
        time.sleep(0.005)
