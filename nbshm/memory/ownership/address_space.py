"""What this process has mapped, by address: which memory can be written to, and which is shared already.

Memory that others have shared (torch, multiprocessing, a mapped file) must not be copied while they write
to it, so the file behind it is handed over itself. The source is /proc/self/maps; where there is none,
nothing is known.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
import stat
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from nbshm.closing import Closing
from nbshm.machine.descriptor_limit import can_open, opened_descriptors

_FEW = 128  # descriptors that are left to the run itself; memory of further files is copied

_Identity: TypeAlias = tuple[int, int]
"""A file as the system knows it: device and inode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFile:
    """A file that others share memory through, by a descriptor of our own."""

    fd: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mapped:
    start: int
    end: int
    flags: str
    offset: int
    device: int
    inode: int
    path: str

    @property
    def file(self) -> _Identity:
        return self.device, self.inode


class AddressSpace(Closing):
    """The mappings of this process when they are first asked for, and the files that it has opened."""

    def __init__(self) -> None:
        self._read: list[_Mapped] | None = None
        self._files: dict[_Identity, SharedFile] = {}
        self._opened: dict[_Identity, int] | None = None

    def shared_file(self, address: int, nbytes: int) -> tuple[SharedFile, int] | None:
        """Return the file behind that memory and where in it the memory begins.

        None if the memory is private, can't be written to, or has a file that can't be reached.
        """
        mapped = self._mapped(address)
        if mapped is None or address + nbytes > mapped.end or mapped.inode == 0 or mapped.flags[1::2] != "ws":
            return None
        file = self._open(mapped)
        return None if file is None else (file, mapped.offset + address - mapped.start)

    def is_writeable(self, address: int, nbytes: int) -> bool:
        """Tell whether all of that memory can be written to."""
        end = address + nbytes
        while address < end:
            mapped = self._mapped(address)
            if mapped is None:
                return not self._mappings
            if mapped.flags[1] != "w":
                return False
            address = mapped.end
        return True

    def is_mapped_from(self, path: str, address: int) -> bool:
        """Tell whether what is mapped at an address is the file that has this name now."""
        mapped = self._mapped(address)
        try:
            with open(path, "rb") as file:  # noqa: PTH123  # its descriptor is what is needed
                if mapped is None:
                    return not self._mappings
                return _is_file_of(mapped, file.fileno()) or mapped.file == _identity_if_mapped(file.fileno())
        except (OSError, ValueError):  # it is gone, or has nothing in it that could be mapped
            return False

    def close(self) -> None:
        """Close the descriptors of the files."""
        for file in self._files.values():
            os.close(file.fd)
        self._files.clear()

    @property
    def _mappings(self) -> list[_Mapped]:
        if self._read is None:
            self._read = list(_read_mappings())
        return self._read

    def _mapped(self, address: int) -> _Mapped | None:
        before = bisect_right(self._mappings, address, key=lambda mapped: mapped.start) - 1
        if before < 0 or address >= self._mappings[before].end:
            return None
        return self._mappings[before]

    def _open(self, mapped: _Mapped) -> SharedFile | None:
        if mapped.file not in self._files:
            if not can_open(_FEW):
                return None
            fd = _open_path(mapped)
            fd = self._copy_descriptor(mapped) if fd is None else fd
            if fd is None:
                return None
            self._files[mapped.file] = SharedFile(fd=fd, nbytes=os.fstat(fd).st_size)
        return self._files[mapped.file]

    def _copy_descriptor(self, mapped: _Mapped) -> int | None:
        """Find a file that has no name by our own descriptors: torch and multiprocessing keep one."""
        if self._opened is None:  # looked at once: there may be thousands, and as many tensors
            self._opened = dict(_opened_files())
        fd = self._opened.get(mapped.file)
        return None if fd is None else os.dup(fd)


def resident(address: int, nbytes: int) -> int:
    """Return how many bytes of some memory take room: pages that nobody has touched are not there yet.

    All, where that can't be seen.
    """
    first, end = address // _PAGE, -(-(address + nbytes) // _PAGE)
    pages = 0
    try:
        with open("/proc/self/pagemap", "rb") as pagemap:  # noqa: PTH123  # not a file to be found
            pagemap.seek(first * _ENTRY)
            for start in range(first, end, _AT_ONCE):
                entries = pagemap.read(min(_AT_ONCE, end - start) * _ENTRY)
                pages += entries[_ENTRY - 1 :: _ENTRY].translate(_IS_THERE).count(1)
    except OSError:
        return nbytes
    return min(nbytes, pages * _PAGE)


_PAGE = mmap.PAGESIZE
_ENTRY = 8  # bytes in /proc/self/pagemap; the highest bits of the last say: in memory, in swap
_AT_ONCE = 1 << 17  # pages
_IS_THERE = bytes(byte & 0b1100_0000 != 0 for byte in range(256))


def _read_mappings() -> Iterator[_Mapped]:
    """Read /proc/self/maps, which is in the order of addresses."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:  # noqa: PTH123  # not a file to be found
            for line in lines:
                addresses, flags, offset, device, inode, *path = line.split(maxsplit=5)
                start, end = (int(part, 16) for part in addresses.split("-"))
                major, minor = (int(part, 16) for part in device.split(":"))
                yield _Mapped(
                    start=start,
                    end=end,
                    flags=flags,
                    offset=int(offset, 16),
                    device=os.makedev(major, minor),
                    inode=int(inode),
                    path=path[0].rstrip("\n") if path else "",
                )
    except FileNotFoundError:
        return


def _open_path(mapped: _Mapped) -> int | None:
    """Open a file by its name, if that is still the one that is mapped."""
    if not mapped.path.startswith("/"):
        return None
    try:
        fd = os.open(mapped.path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    if _is_file_of(mapped, fd):
        return fd
    os.close(fd)
    return None


def _opened_files() -> Iterator[tuple[_Identity, int]]:
    """Yield what this process has open for reading and writing."""
    for fd in opened_descriptors():
        with contextlib.suppress(OSError):  # the descriptor that the directory was read with is closed by now
            status = os.fstat(fd)
            if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR:
                yield (status.st_dev, status.st_ino), fd


def _identity_if_mapped(fd: int) -> _Identity | None:
    """Map a file to see what its maps look like: on btrfs they tell another device than `stat`."""
    with mmap.mmap(fd, 1, access=mmap.ACCESS_COPY) as probe:
        first = ctypes.c_char.from_buffer(probe)
        address = ctypes.addressof(first)
        del first  # a map that somebody looks into can't be closed
        mapped = AddressSpace()._mapped(address)  # noqa: SLF001  # of its own class
        return None if mapped is None else mapped.file


def _is_file_of(mapped: _Mapped, fd: int) -> bool:
    """Tell whether it is that file that is open. A device, which pinned memory is mapped from, is none."""
    status = os.fstat(fd)
    return (status.st_dev, status.st_ino) == mapped.file and stat.S_ISREG(status.st_mode)
