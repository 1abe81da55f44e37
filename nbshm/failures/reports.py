"""What became of the ranks of a run that failed, as data."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from nbshm.failures.frames import Frame
from nbshm.failures.stacks import Dump, Reader, frames_at_death
from nbshm.failures.tracebacks import ExceptionReport

Ending: TypeAlias = Literal["finished", "failed", "interrupted", "timed out", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """A rank's code raised; `preparing` if that was before the cell's first line ran."""

    rank: int
    pid: int
    report: ExceptionReport
    preparing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is known about a death beside how it came; None where the system does not tell.

    `is_unheard`: the rank had found that its connection to the kernel was closed. `memory` are the bytes that
    the process had when it was last looked at, `memory_kills` how many processes the system killed for lack
    of memory during the run, `free_shared` the bytes that were left in /dev/shm.
    """

    is_unheard: bool = False
    memory: int | None = None
    memory_kills: int | None = None
    free_shared: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Died:
    """A rank's process ended without an exception: by a signal (a negative exit code) or by `os._exit`.

    `is_lost`: nobody knows by which, as its forkserver was killed; `exitcode` is multiprocessing's for that.
    `frames` are where a fault hit it, the outermost first; `dump` is what they are read from. `items` are the
    positions of the items of a shared loop (`claim`) that it had: nobody has done, or finished, those.
    """

    rank: int
    pid: int
    exitcode: int
    seconds: float
    is_lost: bool = False
    line: str | None = None
    circumstances: Circumstances = field(default_factory=Circumstances)
    dump: Dump | None = field(default=None, repr=False)
    frames: tuple[Frame, ...] = ()
    items: range = range(0)

    @property
    def signal_name(self) -> str | None:
        """The signal's name, None for a death by exit code."""
        return None if self.exitcode >= 0 else signal_name(-self.exitcode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quit:
    """A rank's code called `sys.exit` with something that does not mean success."""

    rank: int
    pid: int
    exitcode: int
    text: str | None = None
    line: str | None = None


RankFailure: TypeAlias = Raised | Died | Quit


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A rank ended because of another: how (by `interrupt`, `SIGTERM`, ...), and the last line it reached."""

    rank: int
    by: str = "interrupt"
    line: str | None = None


def with_frames(failure: RankFailure, reader: Reader) -> RankFailure:
    """Add to a death by a fault where it hit, which says more than the line that was seen last."""
    frames = frames_at_death(failure.dump, reader) if isinstance(failure, Died) else ()
    if not isinstance(failure, Died) or not frames:
        return failure
    line = next((frame.place for frame in reversed(frames) if frame.cell is not None), failure.line)
    return replace(failure, frames=frames, line=line)


def signal_name(number: int) -> str:
    """Name a signal; a real-time one between the first and the last has none but its number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
