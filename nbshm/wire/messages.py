"""What the kernel says to a worker over its channel, apart from the job."""

from __future__ import annotations

from dataclasses import dataclass

BORROWERS = "those that have its CUDA tensors"
"""What a rank waits for that stays for others: see `Alone`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The first message: who the worker is.

    `directory` is for the files of multiprocessing. Its descriptors are stdout, stderr, the lifeline, and the
    page on which the worker notes its place.
    """

    rank: int
    nprocs: int
    directory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """The answer to a `Result` with memory that was only lent: the notebook has copies of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """The answer to `Waiting` for borrowers: all other ranks have ended, or wait for theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The answer to `Waiting`: every rank has arrived; or, with a reason in `broken`, one never will."""

    broken: str | None = None
