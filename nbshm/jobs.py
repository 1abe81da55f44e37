"""What a worker is given and what it gives back, as plain data.

A `Job` is pickled once and is the same for all ranks of a run; memory travels beside it as file descriptors.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from nbshm.notebook.located_modules import Location
    from nbshm.notebook.surroundings import Surroundings


class Place(NamedTuple):
    """Where one buffer lies: `nbytes` bytes from `offset` in the segment of that number."""

    segment: int
    offset: int
    nbytes: int


class Spot(NamedTuple):
    """Where in the notebook's memory something begins: a segment, or a storage on a GPU, by its number."""

    is_cuda: bool
    number: int
    offset: int


class Places:
    """Places by the number of their buffer, kept as one row of numbers: there may be tens of thousands."""

    __slots__ = ("_row",)

    def __init__(self, places: Iterable[tuple[int, int, int]] = ()) -> None:
        self._row = array("q", chain.from_iterable(places))

    def __getitem__(self, number: int) -> Place:
        row, start = self._row, 3 * number
        return Place(row[start], row[start + 1], row[start + 2])

    def __iter__(self) -> Iterator[Place]:
        return map(Place, self._row[::3], self._row[1::3], self._row[2::3])

    def __len__(self) -> int:
        return len(self._row) // 3


class CudaHandle(NamedTuple):
    """How a storage on a GPU is named to other processes: what torch opens it by, in torch's order.

    `counter_file` and `counter` say where torch counts who has it; the offset and `nbytes` are in bytes.
    """

    device: int
    handle: bytes
    nbytes: int
    offset: int
    counter_file: bytes
    counter: int
    event: bytes
    must_wait: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """Pickled values, and where the memory lies that they refer to by buffer number.

    `segments` are the sizes in bytes of the segments that travel with this parcel, in the order of their
    descriptors. A place's segment number counts the segments that the receiver has already, then these.
    `cuda` says where storages on GPUs are: among those of the receiver, by number, or by a handle.
    """

    pickled: bytes
    places: Places = field(default_factory=Places)
    segments: tuple[int, ...] = ()
    cuda: tuple[int | CudaHandle, ...] = ()

    @property
    def is_lent(self) -> bool:
        """Whether there is memory in it that lasts only as long as the sender."""
        return any(isinstance(place, CudaHandle) for place in self.cuda)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a piece of source came from: the name its code was compiled under, the cell, the first line.

    `cell` is the execution count of the cell, None for source that no cell holds. `line` counts from 1.
    """

    filename: str
    line: int
    cell: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The text to run: `source` is the cell below its `%%parallel` line, which begins at `origin.line`.

    `cell` is the whole cell as the person sees it, for tracebacks. `is_call`: it is no text of the person's,
    but calls a function, whose value need not be sendable. `daemon`: its process may have no children.
    `interactivity` is IPython's word for which values of expressions are shown, or are the result.
    """

    source: str
    cell: str
    origin: Origin
    is_call: bool = False
    daemon: bool = False
    interactivity: str = "last_expr"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a rank gives back: the value of the last expression, and the `out=` variables that it bound."""

    value: Any
    out: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """Import `module`; bind it, or its `attribute`, to `name` (None: import for its effect on a package)."""

    module: str
    attribute: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Define:
    """Run one `def` or `class` statement of the notebook under its own file name and line numbers.

    `live` names expressions of the statement (defaults, class attributes, bases) that are not evaluated
    again: the next values of the stream stand in for them, in this order; for those that `blank` names None
    does, until their values are set after the last definition. `postponed`: annotations are not evaluated.
    """

    name: str
    text: str
    origin: Origin
    column: int = 0
    postponed: bool = False
    live: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Bind the next value of the stream to `name`, because a definition that follows needs it to run."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refill:
    """Give a list, dict or set the contents that the next value of the stream has.

    It had to be there earlier, for code that ran with a definition (a metaclass, `__init_subclass__`) and may
    have added to it once more.
    """

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAttribute:
    """Set the next value of the stream as an attribute of a definition.

    `path` is dotted for those of methods, of an enum's members and of the classes in a class. `only_new`:
    unless the statement made something of that name.
    """

    name: str
    path: str
    only_new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAttribute:
    """Delete an attribute that a definition's statement made."""

    name: str
    attribute: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """Register the next value of the stream as a virtual subclass of an abstract class."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Enter:
    """Put the next value of the stream, a key and what is under it, into the register of a library.

    `module` has the register (see `definitions/registers.py`); `name` is that of a class in the key.
    """

    name: str
    module: str


Step: TypeAlias = Import | Define | Load | Refill | SetAttribute | RemoveAttribute | Register | Enter


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The text that was compiled under a file name, and the number of its cell where it has one."""

    text: str
    number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Why a name did not travel, in a sentence for who uses it; whether it stands for a class."""

    sentence: str
    is_class: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How a worker's `__main__` is built: steps in order, and the stream of values that they take from.

    `steps` end with the last definition; the `late` ones bind, and set on definitions, what can wait for it.
    `values` holds consecutive pickles of one memo, one for each value that a step takes, and before each an
    empty list, by which a reader knows where in the memo the value begins (see `worker/value_stream.py`).
    `cells` are the texts that tracebacks quote, by file name. `left_out` are names that could not travel,
    with the reason in a sentence.
    """

    steps: tuple[Step, ...]
    late: tuple[Step, ...]
    values: bytes
    cells: dict[str, Cell]
    left_out: dict[str, LeftOut]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What a child of plain multiprocessing is given before its work.

    `located` are modules that importing their names would not find. `cells` are the numbers of the notebook's
    cells by file name. `strategy` is torch's sharing strategy if the person has chosen one, `keeper` the
    address of who keeps what is put on queues (see `wire/kept.py`).
    """

    program: Program
    located: dict[str, Location]
    cells: dict[str, int]
    strategy: str | None
    keeper: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What every rank of a run is given; beside it travel descriptors, in this order.

    First the stream of the program's values (as a file, so `program.values` is empty here), then the board
    that the ranks share, the segments with the sizes `segments`, and what queues, locks and connections need.
    `flags` are the compiler's, with the `from __future__` imports of earlier cells; `token` marks displays in
    the output. A `forked` worker has the notebook's own `__main__` already. `keeper` is as in `Preparation`.

    Children that the person's code forks in a rank share the segments numbered in `stay_shared`, and have
    copies of the others. The last `spares` of the segments are for what ranks give back: one for each of the
    first ranks. `cuda` are the notebook's storages on GPUs.
    """

    program: Program
    forked: bool
    body: Body
    out: tuple[str, ...]
    places: Places
    segments: tuple[int, ...]
    stay_shared: frozenset[int]
    spares: int
    cuda: tuple[CudaHandle, ...]
    surroundings: Surroundings
    flags: int
    token: str
    keeper: str | None
