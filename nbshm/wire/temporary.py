"""Where multiprocessing puts the files of this process and of its children."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from multiprocessing import process
from typing import Any


def put_files_in(path: str | None) -> None:
    """Let `multiprocessing.util.get_temp_dir` return that directory, here and in later children."""
    _configuration()["tempdir"] = path


@contextlib.contextmanager
def files_in(path: str) -> Iterator[None]:
    """Let processes that are made inside the block, and their children, put their files there."""
    before = _configuration().get("tempdir")
    put_files_in(path)
    try:
        yield
    finally:
        put_files_in(before)


def _configuration() -> dict[str, Any]:
    """Return what children of this process inherit; `multiprocessing.util.get_temp_dir` looks there first.

    It is private, and there is no other way than this and `tempfile.tempdir`, which is for everybody's files.
    """
    configuration: dict[str, Any] = process.current_process()._config  # type: ignore[attr-defined]  # noqa: SLF001  # see above
    return configuration
