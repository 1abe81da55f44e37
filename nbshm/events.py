"""What a worker can say, and what the supervisor says about it.

Events are plain data: a worker sends them over its socket, the supervisor adds those that only it can know
(output read from file descriptors, the end of a process), and a view shows them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from nbshm.failures.reports import Circumstances
from nbshm.failures.stacks import Dump
from nbshm.failures.tracebacks import ExceptionReport
from nbshm.jobs import Parcel, Spot

Stream: TypeAlias = Literal["stdout", "stderr"]

AT_BARRIER = "barrier"
"""What a rank waits for that has arrived at the run's barrier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A rank is prepared and its body begins now, in the process `pid`."""

    rank: int
    pid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Text that a rank, or a child of it, wrote to file descriptor 1 or 2; it may end inside a line."""

    rank: int
    stream: Stream
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """A rich output: a MIME bundle as IPython publishes it."""

    rank: int
    data: dict[str, Any]
    metadata: dict[str, Any] = field(default_factory=dict)
    display_id: str | None = None
    update: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """The rank's code called `clear_output`."""

    rank: int
    wait: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a rank has come in a loop; `total` is None where nobody knows it.

    `loop` numbers the rank's loops as they began; one that has `ended` is told no more. `shared` is the
    number of the claim whose items the ranks share: `done` counts this rank's then, `total` those of all.
    `detail` is what the code says beside the numbers.
    """

    rank: int
    label: str
    done: float
    total: float | None
    loop: int = 0
    shared: int | None = None
    detail: str = ""
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A rank waits: `at` is `AT_BARRIER`, or says in words what it waits for."""

    rank: int
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A rank goes on after waiting."""

    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemory:
    """A rank holds that many bytes on GPUs."""

    rank: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledCollective:
    """A rank calls a collective of `torch.distributed` with memory of the notebook's, at `place` in a cell.

    `spots` are where that begins. `number` counts the rank's calls of that name in the group.
    """

    rank: int
    group: str
    name: str
    number: int
    spots: frozenset[Spot]
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A line from nbshm itself, about one rank or (rank None) about the run."""

    text: str
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A rank has finished its body; the parcel holds `Outcome(value, out)` (see `nbshm.jobs`).

    The descriptors of the parcel's own segments travel beside the event.
    """

    rank: int
    parcel: Parcel


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A rank's code raised; `preparing` if that was before the body began."""

    rank: int
    report: ExceptionReport
    preparing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """A rank's code called `sys.exit` with something other than success."""

    rank: int
    code: int
    text: str | None = None
    line: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """A rank's code was ended by the interrupt that the kernel sent it."""

    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A rank's process is gone. `exitcode` is as in multiprocessing: negative for a signal.

    `is_lost` where nobody knows it, the forkserver having been killed, and it is multiprocessing's for that.
    `dump` is what a fault left behind of its stacks.
    """

    rank: int
    exitcode: int
    seconds: float
    is_lost: bool = False
    last_line: str | None = None
    dump: Dump | None = None
    circumstances: Circumstances = field(default_factory=Circumstances)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """For some seconds nothing has been said and nothing been computed; where the living ranks are.

    `parents` are ranks that have processes of their own.
    """

    dumps: dict[int, Dump | None]
    parents: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lingering:
    """A rank has given its result, but its process has not ended for some seconds; where its threads are."""

    rank: int
    dump: Dump | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Time has passed without anything being said; a view may redraw."""


Event: TypeAlias = (
    Started
    | Output
    | Display
    | Cleared
    | Progress
    | Waiting
    | Resumed
    | GpuMemory
    | CalledCollective
    | Note
    | Result
    | Failed
    | Exited
    | Interrupted
    | Ended
    | Stalled
    | Lingering
    | Tick
)
