"""How arrays travel: as ranges of shared memory with a shape, a dtype and strides; never their data."""

from __future__ import annotations

import copyreg
import mmap
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from nbshm.memory.buffers import Buffers
from nbshm.memory.loading import lent_masks, memory_of
from nbshm.memory.masks import LentMask
from nbshm.memory.ownership.address_space import AddressSpace
from nbshm.memory.ownership.extents import address_of_first, extent
from nbshm.memory.ownership.names import Family
from nbshm.memory.shared.copying import fill
from nbshm.memory.shared.segments import Segment

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Reduced: TypeAlias = tuple[Any, ...]

_SPARSE = 2  # a snapshot of an array that spans this many times its own bytes is taken of the array alone
_RECARRAY: type[Any] = np.rec.recarray


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayReducer:
    """Reduces arrays for one pickle. `is_shared` tells an array that workers write to from a snapshot.

    `lends_masks`: one that is shared and has no mask is lent one, for what workers mask.
    """

    buffers: Buffers
    is_shared: Callable[[Array | np.void | memoryview], bool]
    lends_masks: bool = False
    space: AddressSpace = field(default_factory=AddressSpace)  # nothing of it is opened here

    def array(self, array: Array) -> Reduced:
        """Reduce an array or a record array, whose bytes are all there is to it."""
        if array.dtype.hasobject:
            return array.__reduce_ex__(5)  # type: ignore[return-value]  # never a string for an array
        return rebuild_array, self._described(array, shared=self.is_shared(array))

    def row(self, row: np.void) -> Reduced:
        """Reduce a row of a structured array, which is a view of that."""
        if row.dtype.hasobject or row.flags.owndata or not self.is_shared(row):
            return row.__reduce__()  # type: ignore[return-value]  # as above
        return rebuild_row, self._described(np.asarray(row), shared=True)

    def view(self, view: memoryview) -> Reduced:
        """Reduce a view of any memory to an array over that."""
        return rebuild_view, self._described(np.asarray(view), shared=self.is_shared(view))

    def masked(self, array: np.ma.MaskedArray[Any, Any]) -> Reduced:
        """Reduce a masked array to its data and its mask, both shared or neither."""
        if array.dtype.hasobject:
            return array.__reduce__()  # type: ignore[return-value]  # as above
        shared = self.is_shared(array)
        mask: Any = array._mask  # type: ignore[attr-defined] # noqa: SLF001  # `mask` is a new view of it, which knows less
        state = {name: value for name, value in vars(array).items() if name != "_mask"}
        has_mask = mask is not np.ma.nomask
        described = self._described(mask, shared=shared) if has_mask else None
        lent = self._lent_mask(array) if shared and self.lends_masks and not has_mask else None
        data = self._described(array.data, shared=shared)
        return rebuild_masked, (type(array), data, described, state, lent)

    def mapped(self, array: np.memmap[Any, Any]) -> Reduced:
        """Reduce a memory map to the name of its file, if that is where its contents are.

        Those of a copy-on-write map are this process's own, and the file of that name may be another by now:
        such a map travels as an array.
        """
        start = _offset_in_file(array)
        if (
            start is None
            or array.mode == "c"
            or not self.space.is_mapped_from(str(array.filename), extent(array)[0])
        ):
            return self.array(array)
        mode = "r+" if array.mode == "w+" else array.mode
        layout = (array.shape, array.dtype, array.strides, array.flags.writeable)
        return rebuild_mapped, (str(array.filename), mode, start, extent(array)[1], _first(array), *layout)

    def subclass(self, array: Array) -> Reduced:
        """Reduce an array of another class to its bytes and its attributes; a snapshot pickles itself."""
        if array.dtype.hasobject or not self.is_shared(array):
            return array.__reduce_ex__(5)  # type: ignore[return-value]  # as above
        plain = np.ndarray.view(array, np.ndarray)  # the class may say something else of its layout
        _, *layout = self._described(plain, shared=True)
        return rebuild_array, (type(array), *layout), _attributes(array), None, None, restore_attributes

    def of_class(self, kind: type) -> Callable[[Any], Reduced] | None:
        """Return the reducer of a class that is derived from arrays; None if the class pickles itself.

        So does a class of memory maps, and one that has a reducer registered with `copyreg`.
        """
        if not issubclass(kind, np.ndarray) or issubclass(kind, np.memmap) or kind in copyreg.dispatch_table:
            return None
        # numpy imports `numpy.ma` when it is first named, which takes a while.
        if "numpy.ma" not in sys.modules or not issubclass(kind, np.ma.MaskedArray):
            return self.subclass
        return None if kind is type(np.ma.masked) else self.masked

    def _described(self, array: Array, *, shared: bool) -> Reduced:
        kind = np.ndarray if isinstance(array, (np.memmap, np.ma.MaskedArray)) else type(array)
        if not shared and extent(array)[1] > _SPARSE * array.nbytes:
            writeable = array.flags.writeable
            array = array.copy(order="K")
            array.flags.writeable = writeable
        layout = (kind, array.shape, array.dtype, array.strides, array.flags.writeable)
        return (*layout, self._number(array, shared=shared), _first(array), not shared)

    def _lent_mask(self, array: np.ma.MaskedArray[Any, Any]) -> Reduced:
        lent = LentMask.to(array)
        self.buffers.lend(lent)
        return self._described(lent.mask, shared=True)

    def _number(self, array: Array, *, shared: bool) -> int | None:
        address, nbytes = extent(array)
        if nbytes == 0:
            return None
        return self.buffers.add(
            address=address,
            nbytes=nbytes,
            kind="array" if shared else "snapshot",
            keeper=array,
            writeable=array.flags.writeable,
        )


def rebuild_array(  # noqa: PLR0917  # pickle calls with positions only
    kind: type[Any],
    shape: tuple[int, ...],
    dtype: Any,
    strides: tuple[int, ...],
    writeable: bool,  # noqa: FBT001  # likewise
    number: int | None,
    first: int,
    private: bool,  # noqa: FBT001  # likewise
) -> Array:
    """Make an array over the memory of a buffer; `first` is where its first element lies in it."""
    if number is None:
        array: Array = np.ndarray(shape, dtype, strides=strides) if 0 in shape else np.zeros(shape, dtype)
    else:
        memory = memory_of(number, private=private)
        array = np.ndarray(shape, dtype, buffer=memory.buffer, offset=memory.offset + first, strides=strides)
    array.flags.writeable = writeable
    return array if kind is np.ndarray else array.view(kind)


def rebuild_row(*described: Any) -> Any:
    """Make a row over the memory of a buffer."""
    return rebuild_array(*described)[()]


def rebuild_view(*described: Any) -> memoryview:
    """Make a view over the memory of a buffer."""
    return rebuild_array(*described).data


def restore_attributes(array: Array, attributes: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Give an array the attributes that its class's `__array_finalize__` can't know."""
    stored, slots = attributes
    if stored:
        vars(array).update(stored)
    for name, value in slots.items():
        setattr(array, name, value)


def _attributes(array: Array) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes in an array's dictionary, and those in slots."""
    names = copyreg._slotnames(type(array))  # type: ignore[attr-defined]  # noqa: SLF001  # as pickle does
    slots = {name: getattr(array, name) for name in names if hasattr(array, name)}
    return dict(getattr(array, "__dict__", {})), slots


def rebuild_masked(
    kind: type[Any], data: Reduced, mask: Reduced | None, state: dict[str, Any], lent: Reduced | None
) -> Any:
    """Make a masked array over the memory of its data and its mask, and note the one that it is lent."""
    array = rebuild_array(*data).view(kind)
    vars(array).update(state)
    array._mask = np.ma.nomask if mask is None else rebuild_array(*mask)  # noqa: SLF001  # assigning `mask` copies
    if lent is not None:
        lent_masks().append(LentMask(array=array, mask=rebuild_array(*lent)))
    return array


def rebuild_mapped(  # noqa: PLR0917  # pickle calls with positions only
    filename: str,
    mode: Any,
    start: int,
    nbytes: int,
    first: int,
    shape: tuple[int, ...],
    dtype: Any,
    strides: tuple[int, ...],
    writeable: bool,  # noqa: FBT001  # likewise
) -> Any:
    """Map the bytes of the file again that an array lies in, and lay the array over them."""
    mapped: Any = np.memmap(filename, dtype=np.uint8, mode=mode, offset=start, shape=(nbytes,))
    array: Any = np.ndarray.__new__(np.memmap, shape, dtype, buffer=mapped, offset=first, strides=strides)
    for name in ("_mmap", "filename", "mode", "offset"):
        setattr(array, name, getattr(mapped, name))
    array.flags.writeable = writeable
    return array


def move(family: Family, segment: Segment, offset: int) -> None:
    """Copy a family's memory into a segment and bind all its names to arrays there."""
    address, nbytes = extent(family.owner)
    fill(segment, offset, source=address, nbytes=nbytes)
    moved = {key: _over(family.members[key], segment, offset - address) for key in family.bindings}
    family.rebind(moved)


def _over(member: Array, segment: Segment, shift: int) -> Array:
    start = address_of_first(member) + shift
    buffer: Any = segment.buffer  # numpy's annotations know few kinds of buffers
    array: Array = np.ndarray(member.shape, member.dtype, buffer=buffer, offset=start, strides=member.strides)
    array.flags.writeable = member.flags.writeable
    return array


def _first(array: Array) -> int:
    return address_of_first(array) - extent(array)[0]


def _offset_in_file(array: np.memmap[Any, Any]) -> int | None:
    """Return where in its file the lowest element of a memory map lies; None if it has no file."""
    mapped = getattr(array, "_mmap", None)
    if mapped is None or array.filename is None or array.nbytes == 0:
        return None
    mapped_from = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    address = address_of_first(np.frombuffer(mapped, dtype=np.uint8))
    return int(mapped_from + extent(array)[0] - address)


def reducers(reducer: ArrayReducer) -> dict[type, Callable[[Any], Reduced]]:
    """Return the reducers of one pickle, by exact type."""
    return {
        np.ndarray: reducer.array,
        _RECARRAY: reducer.array,
        np.void: reducer.row,
        np.record: reducer.row,
        memoryview: reducer.view,
        np.memmap: reducer.mapped,
        np.finfo: _reduce_limits,
    }


def _reduce_limits(limits: np.finfo[Any]) -> Reduced:
    """Make them anew: numpy 2.4 pickles them, but they can't be unpickled."""
    return np.finfo, (limits.dtype,)
