"""The memory that a run's values lie in, collected by address while they are pickled.

Pickled values hold numbers of buffers in the place of data. A buffer is a range of addresses; what lies
there travels as shared memory (see `placing.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from nbshm.memory.masks import LentMask

Kind: TypeAlias = Literal["storage", "array", "snapshot"]


@dataclass(slots=True, kw_only=True)
class Buffer:
    """One range of addresses. What keeps it allocated is kept; a snapshot is its contents as of now.

    `holders` are the tensors that were met over a storage. `writeable` if anything that was met may write
    to it.
    """

    address: int
    nbytes: int
    kind: Kind
    keeper: Any
    writeable: bool
    holders: list[Any]


class Buffers:
    """The buffers of one pickle, by number."""

    def __init__(self) -> None:
        self._buffers: list[Buffer] = []
        self._numbers: dict[tuple[int, int, Kind], int] = {}
        self._cuda: list[Any] = []
        self._lent: list[LentMask] = []

    @property
    def cuda(self) -> Sequence[Any]:
        """The storages on GPUs, with numbers of their own: CUDA hands them over, they are only kept here."""
        return self._cuda

    def add_cuda(self, storage: Any) -> int:
        """Note a storage on a GPU and return its number."""
        self._cuda.append(storage)  # once: a pickler meets it once
        return len(self._cuda) - 1

    @property
    def lent_masks(self) -> Sequence[LentMask]:
        """The masks that were lent to masked arrays; their memory is a buffer like any."""
        return self._lent

    def lend(self, mask: LentMask) -> None:
        """Note a mask that is lent to a masked array."""
        self._lent.append(mask)

    def add(
        self,
        *,
        address: int,
        nbytes: int,
        kind: Kind,
        keeper: Any,
        writeable: bool = True,
        holder: Any = None,
    ) -> int:
        """Note a range of memory and return its number; the same range of the same kind has one number.

        `keeper` owns the memory: it is held as long as the buffers are, so that no later temporary object
        can get the same addresses.
        """
        buffers = self._buffers
        number = self._numbers.setdefault((address, nbytes, kind), len(buffers))
        holders = [] if holder is None else [holder]
        if number == len(buffers):
            new = Buffer(
                address=address, nbytes=nbytes, kind=kind, keeper=keeper, writeable=writeable, holders=holders
            )
            buffers.append(new)
        else:
            buffers[number].writeable |= writeable
            buffers[number].holders += holders
        return number

    def __getitem__(self, number: int) -> Buffer:
        return self._buffers[number]

    def __iter__(self) -> Iterator[Buffer]:
        return iter(self._buffers)

    def __len__(self) -> int:
        return len(self._buffers)
